/** Ports for processes that must be told theirs, chosen so that nobody else gets them before those processes bind them. */
import { createServer } from 'node:net';

/** Below what Linux, macOS and Windows hand out to whoever asks for any port: only those who ask for this one get it. */
const [lowest, highest] = [20_000, 32_000];

/** Ports that this process has handed out: a second call must not return one that is not bound yet. */
const handedOut = new Set<number>();

/** A loopback port that is free, and that no other test gets by chance while it has not been bound yet. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
