/** Services that answer wrongly: each wire gives an answer or a typed error, and the key stays where it belongs. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { ModelError, type ModelEvent } from '../../src/agent/index.ts';
import { ask, type Heard, tool, user } from './client.ts';
import { type Dialect, fakeKey, startFake } from './fake.ts';
import { providerFor, type Subject, subjects } from './subjects.ts';

const wires = ['OpenAI Responses', 'Anthropic, adaptive thinking', 'Gemini 3', 'chat completions: deepseek'].map(
  (name) => subjects.find((subject) => subject.name === name) as Subject,
);

async function listening(t: Test, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function providerAt(t: Test, { settings }: Subject, endPoint: string, more = {}) {
  const provider = await providerFor({ endPoint, apiKey: fakeKey }, { ...settings, ...more });
  t.teardown(() => provider.close());
  return provider;
}

/** A fake whose frames are changed before they are sent. */
function withFrames(dialect: Dialect, change: (frames: readonly string[]) => readonly string[]): Dialect {
  return {
    ...dialect,
    isQuestion: (path) => dialect.isQuestion(path),
    answer(received) {
      const answer = dialect.answer(received);
      return 'frames' in answer ? { frames: change(answer.frames) } : answer;
    },
  };
}

const question = { messages: [user('tool loop 1')], tools: [tool] };

for (const subject of wires) {
  t.test(subject.name, async (t) => {
    t.test('an HTML page is a typed error, with any status', async (t) => {
      for (const [status, isRetryable] of [
        [200, false],
        [404, false],
        [502, true],
      ] as const) {
        const page = `<html><body>${'Gateway '.repeat(50_000)}${fakeKey}</body></html>`;
        const server = createServer((_, response) => {
          response.writeHead(status, { 'content-type': 'text/html' }).end(page);
        });
        const provider = await providerAt(t, subject, `http://${await listening(t, server)}/v1`);
        const error = await ask(provider, question).catch((thrown: unknown) => thrown);
        t.ok(error instanceof ModelError, String(status));
        t.match(error, { isRetryable }, String(status));
        t.ok(String(error).length < 2_000 && !String(error).includes(fakeKey), 'short and without the key');
      }
    });

    t.test('a redirect is not followed: the other host gets neither request nor key', async (t) => {
      let visits = 0;
      const other = await listening(
        t,
        createServer((_, response) => {
          visits += 1;
          response.end();
        }),
      );
      for (const status of [301, 302, 307, 308]) {
        const server = createServer((_, response) => {
          response.writeHead(status, { location: `http://${other}/v1/steal` }).end();
        });
        const provider = await providerAt(t, subject, `http://${await listening(t, server)}/v1`);
        await t.rejects(ask(provider, question), { code: 'upstreamRejected', isRetryable: false });
      }
      t.equal(visits, 0);
    });

    t.test('a service that sends no headers, or no TLS, is a typed error', async (t) => {
      const silent = await listening(
        t,
        createServer(() => undefined),
      );
      const impatient = await providerAt(t, subject, `http://${silent}/v1`, { UpstreamIdleMs: 100 });
      await t.rejects(ask(impatient, question), { code: 'upstreamUnreachable', isRetryable: true });
      const plain = await listening(
        t,
        createServer((_, response) => response.end()),
      );
      const secure = await providerAt(t, subject, `https://${plain}/v1`);
      await t.rejects(ask(secure, question), { code: 'upstreamUnreachable' });
    });

    t.test('events of unknown types are skipped', async (t) => {
      const unknown = 'event: made.up\ndata: {"type":"made.up","sequence_number":1,"made":{"up":[1]}}\n\n';
      const dialect = withFrames(subject.dialect(), (frames) => frames.flatMap((frame) => [unknown, frame]));
      const provider = await providerAt(t, subject, (await startFake(t, dialect)).endPoint);
      const heard = await ask(provider, question);
      t.equal(heard.calls.length, 1);
    });

    t.test('an event that is not JSON is a typed error', async (t) => {
      const dialect = withFrames(subject.dialect(), ([first = '', ...rest]) => [first, 'data: {"broken\n\n', ...rest]);
      const provider = await providerAt(t, subject, (await startFake(t, dialect)).endPoint);
      await t.rejects(ask(provider, question), { code: 'upstreamProtocol' });
    });

    t.test('arguments of ten million characters arrive whole, or are refused for good', async (t) => {
      const long = 'k'.repeat(10_000_000);
      const dialect = withFrames(subject.dialect(), (frames) => frames.map((frame) => frame.replaceAll('k0', long)));
      const provider = await providerAt(t, subject, (await startFake(t, dialect)).endPoint);
      const outcome = await ask(provider, question).catch((thrown: unknown) => thrown);
      if (outcome instanceof Error) t.match(outcome, { code: 'upstreamProtocol', isRetryable: false });
      else {
        const [call] = (outcome as Heard).calls;
        t.ok(JSON.parse(call?.arguments ?? '').key === long, 'whole');
      }
    });

    t.test(
      'property: events lost, doubled or out of order give an answer or a typed error, and no call twice',
      async (t) => {
        let order: readonly number[] = [];
        const dialect = withFrames(subject.dialect(), (frames) =>
          order.map((place) => frames[place % frames.length] ?? ''),
        );
        const provider = await providerAt(t, subject, (await startFake(t, dialect)).endPoint);
        const property = fc.asyncProperty(fc.array(fc.nat(40), { maxLength: 60 }), async (places) => {
          order = places;
          const events: ModelEvent[] = [];
          const outcome = await provider
            .stream(question, (event) => events.push(event), AbortSignal.timeout(60_000))
            .then(
              () => 'answered' as const,
              (error: unknown) => error,
            );
          if (outcome !== 'answered' && !(outcome instanceof ModelError)) throw outcome;
          const ids = events.flatMap((event) => (event.type === 'toolCall' ? [event.call.callId] : []));
          if (outcome === 'answered' && new Set(ids).size !== ids.length)
            throw new Error(`${ids.join()} has one twice`);
          const finishes = events.filter(({ type }) => type === 'finish').length;
          if (finishes !== (outcome === 'answered' ? 1 : 0)) throw new Error(`${finishes} ends of ${outcome}`);
        });
        await t.resolves(fc.assert(property, { numRuns: 80 }));
      },
    );
  });
}
