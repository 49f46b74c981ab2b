import { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/** Channels of a forwarded port. The first message of each channel holds the number of the port. */
const [dataChannel, errorChannel] = [0, 1];

/** Bytes of one forwarded port. An error of the cluster destroys the stream. */
export function portStream(socket: WebSocket): Duplex {
  const begun = new Set<number>();
  const stream = new Duplex({
    allowHalfOpen: true,
    read() {
      socket.resume();
    },
    write(chunk: Buffer, _, done) {
      if (socket.readyState !== socket.OPEN) return done(new Error('the port is closed'));
      return socket.send(Buffer.concat([Buffer.from([dataChannel]), chunk]), (error) => done(error));
    },
    final(done) {
      // The protocol cannot close one direction. A client of HTTP that has finished waits for the answer.
      done();
    },
    destroy(error, done) {
      socket.terminate();
      done(error);
    },
  });
  socket.on('message', (data: Buffer) => {
    const channel = data[0];
    if (channel !== dataChannel && channel !== errorChannel) return;
    if (!begun.has(channel)) return void begun.add(channel);
    if (channel === errorChannel) return void stream.destroy(new Error('the cluster cannot reach the port'));
    if (!stream.push(data.subarray(1))) socket.pause();
  });
  socket.on('close', () => stream.push(null)).on('error', (error) => stream.destroy(error));
  return stream;
}
