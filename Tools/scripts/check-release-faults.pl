#!/usr/bin/perl
# Faults of the service under systemd: sends SIGILL to its process again and again while four clients write, and checks that the
# unit starts it each time, that the journal says what it was doing, and that no acknowledged write is missing. Prints how
# long after the signal it answered /readyz. Only modules of perl-base, which every system of check-release.sh has.
# Usage: faults.pl ROUNDS
use strict;
use warnings;
use IO::Socket::INET;
use POSIX ();

my $rounds = shift // 20;
# How long is waited for what must happen. Only a hang takes so long.
my $patience = 600;
# Of each client, before a fault.
my $writes = 25;
my @clients = ('document', 'document', 'location', 'location');
my $machine = (POSIX::uname())[4];
my $tgkill = {x86_64 => 234, aarch64 => 131}->{$machine} or fail("the number of tgkill on $machine is not known");

sub fail { print "FAILED: @_\n"; exit 1 }
sub rest { select(undef, undef, undef, 0.005) }

# Seconds, in steps of 10 ms.
sub now {
    open(my $file, '<', '/proc/uptime') or fail("/proc/uptime: $!");
    return (split ' ', <$file>)[0];
}

sub wait_for {
    my ($what, $condition) = @_;
    my $end = now() + $patience;
    until ($condition->()) {
        fail("waited in vain for $what") if now() > $end;
        rest();
    }
}

sub property { my $value = `systemctl show --property $_[0] --value hearth`; chomp $value; return $value }

my $socket;

# A request over the kept connection. Returns the status and the body, or nothing when the connection failed.
sub request {
    my ($method, $path, $body) = @_;
    $body //= '';
    local $SIG{PIPE} = 'IGNORE';
    $socket //= IO::Socket::INET->new(PeerAddr => '127.0.0.1:8080', Timeout => $patience) or return;
    my $bytes = "$method $path HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer owner\r\n"
        . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
    my ($status, $size, $answer) = (undef, 0, '');
    if (defined syswrite($socket, $bytes)) {
        while (defined(my $line = <$socket>)) {
            $status = $1 if $line =~ m{^HTTP/1.1 (\d+)};
            $size = $1 if $line =~ /^content-length: (\d+)/i;
            next if $line ne "\r\n";
            my $count = $size > 0 ? read($socket, $answer, $size) : 0;
            return ($status, $answer) if defined $count && $count == $size;
            last;
        }
    }
    close $socket;
    $socket = undef;
    return;
}

sub put {
    my ($client, $number) = @_;
    return request('PATCH', "/v1/projects/demo/databases/(default)/documents/faults$client/$number",
        "{\"fields\": {\"n\": {\"integerValue\": \"$number\"}}}") if $clients[$client] eq 'document';
    return request('PUT', "/faults/$client/$number.json?ns=demo", $number);
}

sub is_there {
    my ($client, $number) = @_;
    if ($clients[$client] eq 'document') {
        my ($status, $body) = request('GET', "/v1/projects/demo/databases/(default)/documents/faults$client/$number");
        return defined $status && $status == 200 && $body =~ /"integerValue": *"$number"/;
    }
    my ($status, $body) = request('GET', "/faults/$client/$number.json?ns=demo");
    return defined $status && $status == 200 && $body eq $number;
}

# Writes the numbers from 1 on, each until it is acknowledged, and then a byte into its file.
sub write_forever {
    my ($client) = @_;
    open(my $file, '>', "/check/acknowledged.$client") or fail("$!");
    for (my $number = 1;; $number++) {
        while (1) {
            my ($status, $body) = put($client, $number);
            if (defined $status && $status == 200) {
                syswrite($file, '.') == 1 or fail("$!");
                last;
            }
            # 503 is an answer of a server that starts or ends.
            fail("$clients[$client] $number: $status $body") if defined $status && $status != 503;
            rest();
        }
    }
}

sub acknowledged { return -s "/check/acknowledged.$_[0]" // 0 }

# The last lines that the process wrote.
sub check_journal {
    my ($process, $round) = @_;
    system('journalctl --sync') == 0 or fail('journalctl --sync');
    my $log = `journalctl --unit hearth --no-pager --output cat _PID=$process --lines 200`;
    my $last = $log =~ s/.*(?=^\S+ error +a fault ends the process )//msr;
    for my $wanted (qr/^\S+ error +a fault ends the process signal="SIGILL" thread="/, qr/ lastRequest="(?:PATCH|PUT) \//,
        qr/ (?:lastClient|client)="127\.0\.0\.1:\d+"/, qr/^\S*hearth\(/m)
    {
        $last =~ $wanted or fail("round $round: the journal's last lines of the process $process lack $wanted:\n$log");
    }
    my ($line) = $last =~ /^(.*lastClient.*)$/m;
    return $line;
}

my @writers;
END { kill KILL => @writers if @writers }
for my $client (0 .. $#clients) {
    my $writer = fork() // fail("fork: $!");
    if ($writer == 0) {
        @writers = ();
        write_forever($client);
    }
    push @writers, $writer;
}

my $restarts = property('NRestarts');
my (@ended, @seconds, $example);
for my $round (1 .. $rounds) {
    my @before = map { acknowledged($_) } 0 .. $#clients;
    for my $client (0 .. $#clients) {
        wait_for("writes of the client $client", sub { acknowledged($client) >= $before[$client] + $writes });
    }
    my $process = property('MainPID');
    # A fault is in the thread that has it; a signal from outside is in the main thread.
    my $thread = $process;
    if ($round % 2) {
        ($thread) = grep { `cat /proc/$process/task/$_/comm` eq "hearth-loop-0\n" } map { s{.*/}{}r } glob("/proc/$process/task/*");
        $thread // fail('there is no thread hearth-loop-0');
    }
    my $killed = now();
    syscall($tgkill, $process + 0, $thread + 0, 4) == 0 or fail("tgkill: $!");
    # The process that ends may still answer.
    wait_for('the end of the process', sub { !-e "/proc/$process" });
    push @ended, now() - $killed;
    wait_for('/readyz', sub { my ($status) = request('GET', '/readyz'); defined $status && $status == 200 });
    push @seconds, now() - $killed;
    $example = check_journal($process, $round);
}
for my $writer (@writers) {
    waitpid($writer, 1) == 0 or fail('a client ended');
    kill KILL => $writer;
    waitpid($writer, 0);
}
@writers = ();

my $restarted = property('NRestarts') - $restarts;
$restarted == $rounds or fail("the unit started the service $restarted times after $rounds faults");
property('ActiveState') eq 'active' or fail('the service is ' . property('ActiveState'));
my $count = 0;
for my $client (0 .. $#clients) {
    for my $number (1 .. acknowledged($client)) {
        is_there($client, $number) or fail("the $clients[$client] $number of the client $client was acknowledged and is lost");
        $count++;
    }
}
printf "faults: %d times SIGILL under load, started again each time, all %d acknowledged writes are there\n", $rounds, $count;
for (['the end of the process', \@ended], ['/readyz', \@seconds]) {
    my ($what, $values) = @$_;
    my @sorted = sort { $a <=> $b } @$values;
    printf "faults: seconds from the signal to %s: median %.2f, most %.2f; %d of %d within 1 s\n", $what,
        $sorted[$#sorted / 2], $sorted[-1], scalar(grep { $_ <= 1 } @sorted), $rounds;
}
print "faults: the journal has, for example: $example\n" if $example;
