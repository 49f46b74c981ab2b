import { type AddressInfo, createServer } from 'node:net';

/** Events of one batched tick; `BATCH` of bench/native/common.h. */
export const batchSize = 16;

/** Reports to the harness where this peer serves, and ends the peer with the harness. */
export function announce(addresses: { port: number; control?: number }): void {
  process.stdout.write(`${JSON.stringify(addresses)}\n`);
  process.stdin.resume();
  process.stdin.once('end', () => process.exit(0));
  process.stdin.once('error', () => process.exit(0));
}

/**
 * Opens the control port through which the load client asks for ticks, and calls `tick` with the number of events of each.
 * Ticks that arrive together are made in one turn of the event loop: a server may write their events together, as the
 * limit does. Resolves with the port.
 */
export function serveTicks(tick: (events: number) => void): Promise<number> {
  const control = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      for (const byte of bytes) tick(byte === 0x62 ? batchSize : 1);
    });
  });
  return new Promise((resolve) => {
    control.listen(0, '127.0.0.1', () => resolve((control.address() as AddressInfo).port));
  });
}
