/** GitHub's own recorded payloads, whole and broken in every way. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { headersOf, scene, settingsWith, signatureOf } from './harness.ts';

// A machine that does much else takes its time over some thousand deliveries.
t.setTimeout(120_000);

const Examples = v.array(
  v.object({ name: v.string(), examples: v.array(v.pipe(v.looseObject({ action: v.optional(v.string()) }))) }),
);
const packageFile = createRequire(import.meta.url).resolve('@octokit/webhooks-examples/package.json');
const examples = v.parse(
  Examples,
  JSON.parse(readFileSync(join(dirname(packageFile), 'api.github.com', 'index.json'), 'utf8')),
);
const recorded = examples.flatMap(({ name, examples: payloads }) =>
  payloads.map((payload) => ({ event: name, payload })),
);

const acted: Readonly<Record<string, readonly string[]>> = {
  pull_request: [
    'opened',
    'reopened',
    'synchronize',
    'ready_for_review',
    'converted_to_draft',
    'closed',
    'labeled',
    'unlabeled',
  ],
  installation: ['created', 'deleted', 'suspend', 'unsuspend', 'new_permissions_accepted'],
  installation_repositories: ['added', 'removed'],
  repository: ['renamed', 'transferred', 'archived', 'unarchived', 'deleted', 'edited'],
};
// GitHub's recordings of check_run.rerequested name no pull request and no id of ours: nothing leads from them to a review.
const isActed = (event: string, action: string | undefined): boolean => acted[event]?.includes(action ?? '') === true;

/** All repositories and owners of the recordings are configured, so that each actionable event is acted upon. */
const namesOf = (value: unknown): string[] => {
  if (typeof value !== 'object' || value === null) return [];
  const name = 'full_name' in value && typeof value.full_name === 'string' ? [value.full_name] : [];
  return [...name, ...Object.values(value).flatMap(namesOf)];
};
const loginsOf = ({ installation }: Record<string, unknown>): string[] => {
  const account = (installation as { account?: { login?: string } } | undefined)?.account;
  return account?.login === undefined ? [] : [`${account.login}/any`];
};
const repositories = [
  ...new Set(recorded.flatMap(({ payload }) => [...namesOf(payload), ...loginsOf(payload)])),
].filter((name) => /^[\w-]+\/[\w.-]+$/.test(name));

t.test('all 329 payloads have the result of the table, once only', async (t) => {
  t.equal(recorded.length, 329);
  const { deliver, store } = await scene(t, settingsWith({ Repositories: repositories }));
  const wrong: string[] = [];
  const counts = new Map<string, number>();
  const all = recorded.map(async ({ event, payload }, index) => {
    const given = { event, body: payload, id: `r-${index}` };
    const { status, body } = await deliver(given);
    const result = String(body['status']);
    counts.set(result, (counts.get(result) ?? 0) + 1);
    const expected = event === 'ping' ? ['pong', 200] : [isActed(event, payload.action) ? 'queued' : 'ignored', 202];
    if (result !== expected[0] || status !== expected[1])
      wrong.push(`${event}.${payload.action}: ${status} ${JSON.stringify(body)}`);
    const again = await deliver(given);
    if (event !== 'ping' && (again.status !== 200 || again.body['status'] !== 'duplicate'))
      wrong.push(`${event}.${payload.action} again: ${again.status}`);
  });
  await Promise.all(all);
  t.same(wrong, []);
  t.comment(Object.fromEntries(counts));
  const { rows } = await store.deliveries({ limit: 1_000 });
  t.equal(rows.length, 329 - (counts.get('pong') ?? 0));
});

t.test('without their repositories being configured, none of them leads to a job', async (t) => {
  const { deliver, sql } = await scene(t, settingsWith({ Repositories: ['some/thing'] }));
  const all = recorded.map(async ({ event, payload }) => {
    const { status } = await deliver({ event, body: payload });
    if (status !== 202 && event !== 'ping') t.fail(`${event}: ${status}`);
  });
  await Promise.all(all);
  t.match(await sql('select count(*) as n from jobs'), [{ n: 0 }]);
});

/** Other values in place of each field that the intake reads. */
const strange: readonly unknown[] = [null, '', -1, [null], {}];
const fields = [
  ['action'],
  ['sender'],
  ['sender', 'login'],
  ['repository'],
  ['repository', 'full_name'],
  ['repository', 'html_url'],
  ['issue'],
  ['issue', 'number'],
  ['issue', 'pull_request'],
  ['comment'],
  ['comment', 'id'],
  ['comment', 'body'],
  ['comment', 'user'],
  ['comment', 'author_association'],
  ['pull_request'],
  ['pull_request', 'number'],
  ['changes'],
  ['check_run'],
  ['check_run', 'head_sha'],
  ['check_run', 'pull_requests'],
  ['installation'],
  ['installation', 'account'],
  ['installation', 'account', 'login'],
] as const;

function mutated(payload: object, [key = '', ...rest]: readonly string[], value: unknown): object | undefined {
  const inner = (payload as Record<string, unknown>)[key];
  if (rest.length === 0) {
    const { [key]: _, ...others } = payload as Record<string, unknown>;
    return value === undefined ? others : { ...others, [key]: value };
  }
  if (typeof inner !== 'object' || inner === null) return undefined;
  return { ...payload, [key]: mutated(inner, rest, value) };
}

t.test(
  'each payload with fields missing or of other types: a clear answer, and a job only when all is there',
  async (t) => {
    const { deliver, sql } = await scene(t, settingsWith({ Repositories: repositories }));
    const wrong: string[] = [];
    const answers: Promise<void>[] = [];
    let tried = 0;
    for (const { event, payload } of recorded) {
      if (event !== 'issue_comment' && event !== 'check_run' && !(event in acted)) continue;
      for (const path of fields) {
        for (const value of [undefined, ...strange]) {
          const body = mutated(payload, path, value);
          if (body === undefined) continue;
          tried += 1;
          answers.push(
            deliver({ event, body, id: `m-${tried}` }).then((answer) => {
              const code = (answer.body['error'] as { code?: string } | undefined)?.code;
              const isTaken = answer.status === 202 || answer.body['status'] === 'duplicate';
              const isFine = isTaken || (answer.status === 400 && code === 'invalidPayload');
              if (!isFine)
                wrong.push(`${event} ${path.join('.')} = ${JSON.stringify(value)}: ${answer.status} ${code}`);
            }),
          );
        }
      }
      await Promise.all(answers.splice(0));
    }
    t.comment({ tried });
    t.same(wrong.slice(0, 20), []);
    const jobs = await sql('select payload from jobs');
    for (const { payload } of jobs) {
      const { repositoryKey, number, reason } = JSON.parse(String(payload));
      if (repositoryKey !== undefined) t.match(repositoryKey, /^github:github\.com\/[a-z0-9-]+\/[a-z0-9._-]+$/);
      if (String(reason).startsWith('pull_request')) t.ok(Number.isSafeInteger(number) && number > 0);
    }
  },
);

t.test('cut off, changed after signing, signed by others: refused, and nothing is stored', async (t) => {
  const { deliver, state } = await scene(t, settingsWith({ Repositories: repositories }));
  const before = await state();
  const wrong: string[] = [];
  for (const { event, payload } of recorded) {
    const whole = Buffer.from(JSON.stringify(payload));
    const cut = whole.subarray(0, whole.byteLength - 1 - (whole.byteLength % 97));
    const flipped = Buffer.from(whole);
    flipped[whole.byteLength >> 1] = (flipped[whole.byteLength >> 1] ?? 0) ^ 1;
    const kept = { 'x-hub-signature-256': signatureOf(whole) };
    const cases = [
      ['cut and signed anew', { body: cut }, [400]],
      ['cut', { body: cut, headers: kept }, [403, 429]],
      ['one bit changed', { body: flipped, headers: kept }, [403, 429]],
      ['signed by others', { body: whole, secret: 'x' }, [403, 429]],
      ['a space after', { body: Buffer.concat([whole, Buffer.from(' ')]), headers: kept }, [403, 429]],
      [
        'SHA-1 only',
        { body: whole, headers: { 'x-hub-signature-256': undefined, 'x-hub-signature': 'sha1=0' } },
        [403, 429],
      ],
    ] as const;
    for (const [what, given, expected] of cases) {
      const { status } = await deliver({ event, ...given });
      if (!expected.some((each) => each === status)) wrong.push(`${event} ${what}: ${status}`);
    }
  }
  t.same(wrong, []);
  t.same(await state(), before);
  t.ok(headersOf({ body: {} })['x-github-delivery']);
});
