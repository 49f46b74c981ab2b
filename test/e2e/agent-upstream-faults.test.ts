import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startThread } from '../../src/client/index.ts';
import {
  answered,
  cut,
  delta,
  done,
  event,
  eventStream,
  hang,
  rateLimited,
  refusal,
  type Script,
  type UpstreamRequest,
  write,
} from '../fixtures/upstream/mock-upstream.ts';
import { eventually } from '../hub/harness.ts';
import { type PictureType, pictures, pictureUrl } from '../pictures.ts';
import { checkCompleteTurn, partialAnswer, user, workspaceWithUpstream } from './agent-faults.ts';
import {
  connect,
  itemsOf,
  lastWords,
  obedient,
  readThread,
  runTurn,
  startApi,
  tracesOf,
  turnEnd,
} from './agent-server.ts';
import { startHub } from './harness.ts';

interface Fault {
  readonly script: Script;
  /** HTTP status of the chat API for a fault before the first words. */
  readonly status: number;
  readonly code: string;
  readonly turn: string;
  /** Words of the model before the fault. */
  readonly said?: string;
  readonly retryAfter?: string;
}

const faults: Readonly<Record<string, Fault>> = {
  'a connection closed before the answer': {
    script: [cut],
    status: 502,
    code: 'upstream_unreachable',
    turn: 'upstreamUnreachable',
  },
  'an upstream without an answer': {
    script: [hang],
    status: 502,
    code: 'upstream_unreachable',
    turn: 'upstreamUnreachable',
  },
  'headers without a body': {
    script: [eventStream, hang],
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
  },
  'a pause longer than UpstreamIdleMs in an answer': {
    script: [...partialAnswer, hang],
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
    said: 'half an ',
  },
  'a connection closed within an answer': {
    script: [...partialAnswer, cut],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
    said: 'half an ',
  },
  'a connection closed within a tool call': {
    script: [
      ...partialAnswer,
      write(
        event(
          delta({
            tool_calls: [
              {
                index: 0,
                id: 'half',
                type: 'function',
                function: { name: 'WriteFile', arguments: '{"path":"half.txt",' },
              },
            ],
          }),
        ),
      ),
      cut,
    ],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
    said: 'half an ',
  },
  'an error event within an answer': {
    script: [
      ...partialAnswer,
      write(event({ error: { message: 'out of memory', type: 'server_error' } })),
      write(done),
    ],
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
    said: 'half an ',
  },
  'an HTML page instead of an event stream': {
    script: [
      { do: 'head', status: 200, headers: { 'content-type': 'text/html' } },
      write('<html><body>It works!</body></html>'),
    ],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
  },
  'bytes that are not server-sent events': {
    script: [eventStream, write(Buffer.from([0, 255, 254, 10, 128, 10, 10])), write('data: {"choices": [nonsense\n\n')],
    status: 502,
    code: 'upstream_protocol',
    turn: 'upstreamProtocol',
  },
  'a refused key': {
    script: refusal(401, { message: 'Incorrect API key provided.' }),
    status: 502,
    code: 'upstream_auth',
    turn: 'upstreamUnauthorized',
  },
  'a rate limit': {
    script: rateLimited(7),
    status: 429,
    code: 'upstream_rate_limit',
    turn: 'upstreamRateLimited',
    retryAfter: '7',
  },
  'status 500': {
    script: refusal(500, { message: 'Internal server error.' }),
    status: 502,
    code: 'upstream_failed',
    turn: 'upstreamFailed',
  },
  'a rejected request': {
    script: refusal(400, { message: 'Unsupported value.' }),
    status: 400,
    code: 'upstream_rejected',
    turn: 'upstreamRejected',
  },
  'a context that exceeds the limit of the model': {
    script: refusal(400, { message: 'Too long.', code: 'context_length_exceeded' }),
    status: 400,
    code: 'context_length_exceeded',
    turn: 'contextTooLong',
  },
};

t.test('an upstream fault fails the request and the turn; the next ones work', async (t) => {
  const { place, workspace, upstream } = await workspaceWithUpstream(
    t,
    (request) => faults[lastWords(request).words]?.script ?? obedient(request),
    // Longer than an answer takes on a busy machine; below `chat.heartbeatMs`, after which a stream is committed to status 200.
    { UpstreamIdleMs: 4_000 },
  );
  const { chat, url } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  const threadId = await startThread(client, { workspacePath: workspace });

  for (const [at, [name, fault]] of Object.entries(faults).entries()) {
    t.test(`${name} fails the turn with ${fault.turn}`, async (t) => {
      const { status, code, said = '', retryAfter = null } = fault;
      const body = { messages: [user(name)] };
      const [whole, stream, turn] = await Promise.all([
        chat(body),
        chat({ ...body, stream: true }, { headers: { 'x-session-id': `streamed-${at}` } }),
        runTurn(client, threadId, name),
      ]);
      t.equal(whole.status, status);
      t.equal(whole.headers.get('retry-after'), retryAfter);
      t.match(await whole.json(), { error: { code, message: /upstream/, param: null } });

      if (said === '') {
        t.equal(stream.status, status);
        t.match(await stream.json(), { error: { code } });
      } else {
        t.equal(stream.status, 200);
        const frames = (await stream.text())
          .trim()
          .split('\n\n')
          .map((frame) => frame.replace(/^data: /, ''));
        t.match(
          JSON.parse(frames.at(-1) ?? ''),
          { error: { code, message: /upstream/ } },
          'the last frame is the error',
        );
        const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame));
        t.equal(chunks.map(({ choices }) => choices[0].delta.content ?? '').join(''), said);
      }

      t.match(turn, { status: 'failed', error: { code: fault.turn } });
      t.strictSame(
        itemsOf(turn, 'agentMessage').map(({ text }) => text),
        said === '' ? [] : [said],
      );
      t.equal(itemsOf(turn, 'error').length, 1);
      checkCompleteTurn(t, turn);
      t.match(await runTurn(client, threadId, 'hello'), { status: 'completed' }, 'the next turn works');
      const again = await chat({ messages: [user('hello')] }, { headers: { 'x-session-id': `streamed-${at}` } });
      t.match(await again.json(), { choices: [{ message: { content: 'done' } }] });
    });
  }

  t.test(
    'an upstream that does not listen fails the turn with upstreamUnreachable; the server stays healthy',
    async (t) => {
      await upstream.close();
      const answer = await chat({ messages: [user('hello')] });
      t.equal(answer.status, 502);
      t.match(await answer.json(), { error: { code: 'upstream_unreachable' } });
      t.match(await runTurn(client, threadId, 'hello'), { status: 'failed', error: { code: 'upstreamUnreachable' } });
      t.match(await (await fetch(`${url}/v1/health`)).json(), { status: 'ok', activeTurns: 0 });
    },
  );
  t.notOk(existsSync(join(workspace, 'half.txt')), 'an incomplete call is not run');
});

/** Pictures of a request whose bytes are not of their media type, or are cut, as real services notice. */
function brokenPictures({ body }: UpstreamRequest): number {
  const urls = [...JSON.stringify(body.messages).matchAll(/data:image\/(\w+);base64,([\w+/=]*)/g)];
  return urls.filter(([, type = '', base64 = '']) => {
    const bytes = Buffer.from(base64, 'base64');
    return !bytes.equals(pictures[type as PictureType]);
  }).length;
}

const oddPictures: Readonly<Record<string, string>> = {
  'a PNG called JPEG': pictureUrl(pictures.png, 'jpeg'),
  'a page of HTML called PNG': pictureUrl(Buffer.from('<!doctype html><p>hello'), 'png'),
  'a PNG that is cut': pictureUrl(pictures.png.subarray(0, 16), 'png'),
  'bytes that are not base64': 'data:image/png;base64,%%%%',
  'a GIF called PNG': pictureUrl(pictures.gif, 'png'),
};

t.test('a picture that a strict service refuses leaves its conversation usable, on both APIs', async (t) => {
  let refusals = 0;
  let shown = 0;
  const { place, workspace, upstream } = await workspaceWithUpstream(t, (request) => {
    shown += JSON.stringify(request.body.messages).includes('data:image/') ? 1 : 0;
    if (brokenPictures(request) === 0) return obedient(request);
    refusals += 1;
    return refusal(400, { message: 'Could not process image.' });
  });
  const { chat } = await startApi(place, workspace);
  const client = await connect(t, workspace);
  for (const [name, url] of Object.entries(oddPictures)) {
    const threadId = await startThread(client, { workspacePath: workspace });
    const parts = [
      { type: 'text', text: 'see' },
      { type: 'image', url },
    ];
    const ended = turnEnd(client, threadId);
    await client.request('turn/start', { threadId, input: parts });
    t.match(await ended, { method: 'turn/completed' }, name);
    for (const words of ['never mind', 'hello?'])
      t.match(await runTurn(client, threadId, words), { status: 'completed' }, `${name}: ${words}`);
    const headers = { 'x-session-id': `session-${name.replaceAll(' ', '-')}` };
    const content = [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url } },
    ];
    const answer = await chat({ messages: [{ role: 'user', content }] }, { headers });
    // The chat API refuses a picture that it can judge; one that it takes must not stay in the way.
    t.ok(answer.status === 200 || answer.status === 400, `${name}: ${answer.status}`);
    const next = await chat({ messages: [user('and now?')] }, { headers });
    t.equal(next.status, 200, `${name}: the session goes on`);
  }
  t.ok(shown > 0, 'positive control: pictures reach the service');
  const raw = await fetch(`${upstream.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [user(oddPictures['a PNG called JPEG'] ?? '')] }),
  });
  t.equal(raw.status, 400, 'positive control: the service refuses such a picture');
  t.equal(refusals, 1, 'nothing else was refused');
});

t.test('a context refused as too long is compacted once, and the turn completes', async (t) => {
  let summaries = 0;
  let refusals = 0;
  let refusesAll = false;
  const isSummary = ({ body }: UpstreamRequest) => /^Summarise the conversation/.test(body.messages[0].content);
  const tooLong = () => {
    refusals += 1;
    return refusal(400, { message: 'Too long.', code: 'context_length_exceeded' });
  };
  const { place, workspace } = await workspaceWithUpstream(
    t,
    (request) => {
      if (isSummary(request)) {
        summaries += 1;
        return answered(request, { text: 'All was well.' });
      }
      return refusesAll || request.body.messages.length > 5 ? tooLong() : obedient(request);
    },
    { Compaction: { KeepRecentTurns: 1 } },
  );
  const hub = await startHub(place);
  await hub.client.ensure({ workspacePath: workspace });
  const client = await connect(t, workspace);
  const threadId = await startThread(client, { workspacePath: workspace });
  for (const words of ['one', 'two']) t.equal((await runTurn(client, threadId, words)).status, 'completed');
  const turn = await runTurn(client, threadId, 'three');
  t.equal(turn.status, 'completed');
  t.match(itemsOf(turn, 'systemNotice'), [{ kind: 'contextCompacted' }]);
  t.match(itemsOf(turn, 'agentMessage'), [{ text: 'done' }]);
  t.strictSame([summaries, refusals], [1, 1]);
  refusesAll = true;
  const failed = await runTurn(client, threadId, 'four');
  t.match(failed, { status: 'failed', error: { code: 'contextTooLong' } });
  checkCompleteTurn(t, failed);
  refusesAll = false;
  t.equal((await runTurn(client, threadId, 'five')).status, 'completed');
  t.equal((await readThread(client, threadId)).turns?.length, 5, 'the turns before the compaction can be read');
  await eventually(
    () => tracesOf(workspace).some(({ type }) => type === 'context.compacted') || undefined,
    'the compaction is traced',
  );
});
