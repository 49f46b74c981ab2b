import { createServer } from 'node:net';

/** `unknown`: we may not use the port ourselves, which says nothing of others. */
export type PortState = 'free' | 'taken' | 'unknown';

/** Whether a port can be had on the loopback, or on every address, by having it for a moment. */
export async function tryPort(port: number, host: '127.0.0.1' | '*'): Promise<PortState> {
  const hosts = host === '*' ? ['0.0.0.0', '::'] : [host];
  for (const each of hosts) {
    const state = await bind(port, each);
    if (state !== 'free') return state;
  }
  return 'free';
}

function bind(port: number, host: string): Promise<PortState> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const state = states[error.code ?? ''];
      if (state === undefined) reject(error);
      else resolve(state);
    });
    server.listen({ port, host, exclusive: true, ipv6Only: host === '::' }, () => server.close(() => resolve('free')));
  });
}

const states: Readonly<Record<string, PortState>> = {
  EADDRINUSE: 'taken',
  EACCES: 'unknown',
  EPERM: 'unknown',
  // No IPv6 on this machine.
  EADDRNOTAVAIL: 'free',
  EAFNOSUPPORT: 'free',
};
