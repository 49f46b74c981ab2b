import { type AddressInfo, createServer } from 'node:net';

/** Events of one batched tick; `BATCH` of bench/native/common.h. */
export const batchSize = 16;

/** Tells the harness where this peer serves, and makes it end with the harness. */
export function announce(addresses: { port: number; control?: number }): void {
  process.stdout.write(`${JSON.stringify(addresses)}\n`);
  process.stdin.resume();
  process.stdin.once('end', () => process.exit(0));
  process.stdin.once('error', () => process.exit(0));
}

/**
 * Opens the control port through which the load client asks for ticks, and calls `tick` with the number of events of each,
 * one tick per turn of the event loop. Resolves with the port.
 */
export function serveTicks(tick: (events: number) => void): Promise<number> {
  const waiting: number[] = [];
  let isScheduled = false;
  const next = (): void => {
    const events = waiting.shift();
    isScheduled = waiting.length > 0;
    if (isScheduled) setImmediate(next);
    if (events !== undefined) tick(events);
  };
  const control = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      for (const byte of bytes) waiting.push(byte === 0x62 ? batchSize : 1);
      if (!isScheduled) {
        isScheduled = true;
        setImmediate(next);
      }
    });
  });
  return new Promise((resolve) => {
    control.listen(0, '127.0.0.1', () => resolve((control.address() as AddressInfo).port));
  });
}
