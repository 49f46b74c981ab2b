/**
 * Answers the commands of one fake engine in the process of its test. The programs `docker` and `docker-compose` only pass their
 * words, environment and streams on: a Perl program is up in a sixth of the time of Node, and tests run some thousand.
 */
import { execFileSync } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { finished, Readable, Writable } from 'node:stream';
import { answerCall } from './docker.mjs';

/** Longest message of a client: its environment, or a piece of its input. */
const maxBytes = 16 * 2 ** 20;
const headerBytes = 4;

/** Path of Perl: the programs run with a `PATH` that may hold nothing else. */
const perl = execFileSync('sh', ['-c', 'command -v perl'], { encoding: 'utf8' }).trim();

/** Source of the program `name`, which asks the server at `path`. */
export const clientSource = (name: string, path: string): string => `#!${perl}
# Sends name, process id, count of words, words and environment. Obeys frames: o/e (output), i (send your input), x (end with this code).
$SIG{PIPE} = 'IGNORE';
my ($server, $path) = (undef, ${perlWord(path)});
my $to = $^O eq 'linux' ? pack('S a108', 1, $path) : do { require Socket; Socket::pack_sockaddr_un($path) };
socket($server, 1, 1, 0) && connect($server, $to) or die "The fake engine does not answer: $!\\n";
sub deliver { my $rest = shift; while (length $rest) { my $sent = syswrite($server, $rest) // die "$!\\n"; substr($rest, 0, $sent) = '' } }
sub frame { deliver(pack('N', length $_[0]) . $_[0]) }
sub take { my $all = ''; while (length($all) < $_[0]) { sysread($server, $all, $_[0] - length($all), length $all) or exit 70 } $all }
frame(join("\\0", ${perlWord(name)}, $$, scalar @ARGV, @ARGV, map { "$_=$ENV{$_}" } keys %ENV));
for (;;) {
  my ($kind, $length) = unpack('a N', take(5));
  my $data = take($length);
  exit $data if $kind eq 'x';
  syswrite(STDOUT, $data) if $kind eq 'o';
  syswrite(STDERR, $data) if $kind eq 'e';
  if ($kind eq 'i') { frame($_) while sysread(STDIN, $_, 65536); frame('') }
}
`;

const perlWord = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;

/** Listens for the programs of the engine in `directory`. @returns its end, which hangs up on programs that still wait */
export function serveEngine(directory: string, path: string): () => void {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A client that was killed has hung up.
    socket.on('error', () => socket.destroy());
    void serve(socket, directory);
  });
  // Only a program that waits keeps the process of the test alive.
  server.listen(path).unref();
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
}

async function serve(socket: Socket, directory: string): Promise<void> {
  const messages = messagesOf(socket);
  const first = await messages.next();
  if (first.done === true) return;
  const [program = '', pid = '0', count = '0', ...rest] = first.value.toString('utf8').split('\0');
  const hungUp = new AbortController();
  finished(socket, () => hungUp.abort());
  const frame = (kind: string, data: string | Buffer): void => {
    const bytes = Buffer.from(data);
    const header = Buffer.alloc(headerBytes + 1, kind);
    header.writeUInt32BE(bytes.length, 1);
    if (!socket.destroyed) socket.write(Buffer.concat([header, bytes]));
  };
  const output = (kind: string): Writable =>
    new Writable({
      write: (chunk: Buffer, _, done) => {
        frame(kind, chunk);
        done();
      },
    });
  const code = await answerCall({
    directory,
    program,
    pid: Number(pid),
    args: rest.slice(0, Number(count)),
    env: Object.fromEntries(rest.slice(Number(count)).map(splitVariable)),
    input: () => {
      frame('i', '');
      return Readable.from(inputOf(messages));
    },
    stdout: output('o'),
    stderr: output('e'),
    hungUp: hungUp.signal,
  });
  frame('x', String(code));
  socket.end();
}

function splitVariable(text: string): [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Input of a client, up to the empty message at its end. */
async function* inputOf(messages: AsyncGenerator<Buffer, void>): AsyncGenerator<Buffer, void> {
  for (let next = await messages.next(); next.done !== true && next.value.length > 0; next = await messages.next())
    yield next.value;
}

/** Messages of a client: a length and as many bytes. Ends with the connection. */
async function* messagesOf(socket: Socket): AsyncGenerator<Buffer, void> {
  let rest = Buffer.alloc(0);
  for (;;) {
    const length = rest.length < headerBytes ? undefined : rest.readUInt32BE();
    if (length !== undefined && length > maxBytes) throw new Error(`A client of the fake engine sent ${length} bytes`);
    if (length !== undefined && rest.length >= headerBytes + length) {
      yield rest.subarray(headerBytes, headerBytes + length);
      rest = rest.subarray(headerBytes + length);
      continue;
    }
    const chunk: Buffer | undefined = await nextChunk(socket);
    if (chunk === undefined) return;
    rest = Buffer.concat([rest, chunk]);
  }
}

/** Undefined at the end of the connection. */
function nextChunk(socket: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const look = (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null && !socket.readableEnded && !socket.destroyed) return;
      for (const event of ['readable', 'end', 'close']) socket.off(event, look);
      resolve(chunk ?? undefined);
    };
    for (const event of ['readable', 'end', 'close']) socket.on(event, look);
    look();
  });
}
