import HearthServer

HearthMain.run()
