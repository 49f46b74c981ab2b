/** Ports for processes that get their port as a setting, chosen so that no other process binds them before. */
import { createServer } from 'node:net';

/** Below the range from which Linux, macOS and Windows allocate ports: a process gets one of these only by its number. */
const [lowest, highest] = [20_000, 32_000];

/** Ports that this process has handed out: a second call must not return one that is not bound yet. */
const handedOut = new Set<number>();

/** Free loopback port that no other test gets by chance before it is bound. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if (await isFree(port)) return port;
  }
}

/** Whether no process listens on this loopback port. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
