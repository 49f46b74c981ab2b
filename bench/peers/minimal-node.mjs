/** The least Node process that starts and listens: the base of a cold start. */
import { createServer } from 'node:http';

const server = createServer((_request, response) => response.end('{}'));
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`));
process.stdin.resume();
process.stdin.once('end', () => process.exit(0));
