/** Fastify with fixed bytes: no auth, the body parsed as it always does. BENCH_BODY is the answer. */
import Fastify from 'fastify';
import { announce } from './peer.ts';

const body = process.env.BENCH_BODY ?? '{}';
const app = Fastify({ keepAliveTimeout: 10_000 });
const answer = (_request, reply) => reply.type('application/json').send(body);
app.get('/*', answer);
app.post('/*', answer);
await app.listen({ host: '127.0.0.1', port: 0 });
announce({ port: app.server.address().port });
