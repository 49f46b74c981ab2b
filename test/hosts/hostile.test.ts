/** Answers of a hostile remote Hub, from generators and at the limits of size and depth. */
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { HubThreadListAnswer, InboxListAnswer, RecordListAnswer } from '../../src/client/answers.ts';
import { HubClient } from '../../src/client/index.ts';
import { clean, FleetLog } from '../../src/hosts/index.ts';
import { fakeHub, sendJson } from '../client/fake-hub.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_201 };

/** Control characters, direction marks and line separators. */
const unsafe = /(?![\n\t])[\p{Cc}\p{Cs}\u200e\u200f\u2028-\u202e\u2060-\u206f]/u;
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('<img src=x onerror=alert(1)>', '\u001b]0;owned\u0007', '\u202egpj.exe', 'ws://h/?token=secret-word'),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 24, withCrossShrink: true },
    text,
    fc.double(),
    fc.constantFrom(null, true),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(fc.string({ maxLength: 8 }), tie('json'), { maxKeys: 4 }),
  ),
}));

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

t.test('every text of a generated answer is safe to show, and cleaning twice changes nothing', async () => {
  fc.assert(
    fc.property(json, (value) => {
      const cleaned = clean(value);
      for (const each of textsIn(cleaned)) if (unsafe.test(each) || each.includes('secret-word')) throw new Error(each);
      return JSON.stringify(clean(cleaned)) === JSON.stringify(cleaned);
    }),
    { numRuns: 300, ...seed },
  );
});

t.test('an answer of any depth is cut', async (t) => {
  const depth = 100_000;
  const deep: unknown = JSON.parse('['.repeat(depth) + ']'.repeat(depth));
  t.ok(JSON.stringify(clean(deep)).length < 100);
});

const issuesOf = (answer: v.GenericSchema, value: unknown): string[] | undefined =>
  v.safeParse(answer, value).issues?.map(({ message }) => message);

t.test('regression: a list of 300,000 rows is refused before its rows are checked', async (t) => {
  const rows = Array.from({ length: 300_000 }, () => ({}));
  const row = { workspacePath: '', canonicalWorkspacePath: '', state: '' };
  for (const [answer, value] of [
    [RecordListAnswer, rows],
    [InboxListAnswer, rows],
    [HubThreadListAnswer, { threads: rows, hasMore: false, workspaces: [] }],
  ] as const) {
    t.match(issuesOf(answer, value), ['Expected at most 20000 rows']);
  }
  t.equal(
    v.parse(
      RecordListAnswer,
      Array.from({ length: 20_000 }, () => row),
    ).length,
    20_000,
  );
});

t.test('a redirect of a remote Hub is not followed, and wrong answers are errors', async (t) => {
  let reached = 0;
  const token = 'x'.repeat(40);
  const other = await fakeHub(
    (_, response) => {
      reached += 1;
      sendJson(response, 200, []);
    },
    [token],
  );
  t.teardown(() => other.close());
  const bodies = ['', 'null', '{}', '[{}]', '[{"workspacePath":1}]', '{"appServers":[]}', '\u0000', '['.repeat(5_000)];
  let body: string | null = null;
  const hostile = await fakeHub(
    (_, response) => {
      if (body === null) response.writeHead(302, { location: `${other.baseUrl}/v1/appservers` }).end();
      else response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    },
    [token],
  );
  t.teardown(() => hostile.close());
  const hub = new HubClient({ apiBaseUrl: hostile.baseUrl, token }, { isProven: true });
  await t.rejects(hub.list());
  t.equal(reached, 0, 'the token was sent to no other address');
  for (body of bodies) await t.rejects(hub.list(), { message: /.+/ }, JSON.stringify(body));
});

t.test('events of a host cannot take the place of another host, or of this Hub', async (t) => {
  const log = new FleetLog();
  const event = { kind: 'x', at: '', workspacePath: null, data: {} };
  log.append('', 'own-1', event);
  fc.assert(
    fc.property(text, text, (id, kind) => {
      log.append('evil', id, { ...event, kind: `${kind}\nid: ~own-9` });
      const frames = log.replay('~own-1').map((frame) => Buffer.from(frame).toString());
      for (const frame of frames) {
        const lines = frame.trimEnd().split('\n');
        const ids = lines.filter((line) => line.startsWith('id:'));
        if (ids.length !== 1 || !/(?:^id: |,)~own-1(?:,|$)/.test(ids[0] ?? '')) throw new Error(frame);
        const data = JSON.parse(lines.find((line) => line.startsWith('data: '))?.slice(6) ?? '');
        if (data.host !== 'evil' || !data.id.startsWith('evil~')) throw new Error(frame);
      }
    }),
    { numRuns: 200, ...seed },
  );
  t.match(
    Buffer.from(log.replay('evil~own-1,~own-1')[0] ?? '').toString(),
    /hub\.gap/,
    'an id counts for its own host only',
  );
});
