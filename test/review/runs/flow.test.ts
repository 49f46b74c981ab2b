import t from 'tap';
import { GitError } from '../../../src/review/git/index.ts';
import { quiet } from '../store/databases.ts';
import { finding, Gate, World } from './world.ts';

/** Logger that collects the logged reasons of interrupted turns. */
function interruptReasons() {
  const reasons: unknown[] = [];
  const info = (text: string, fields?: object): void => {
    if (text === 'interrupting the turn of a review run') reasons.push(Reflect.get(fields ?? {}, 'why'));
  };
  return { reasons, logger: { ...quiet, info } };
}

const failure = (code: string, isRetryable: boolean, retryAfterMs?: number) =>
  Object.assign(new Error(code), { code, isRetryable, ...(retryAfterMs !== undefined && { retryAfterMs }) });

/** Throws the first time only. */
const failsOnce = (error: Error) => {
  let isFirst = true;
  return () => {
    const mustFail = isFirst;
    isFirst = false;
    if (mustFail) throw error;
  };
};

const steps: readonly (readonly [string, (world: World, fails: () => void) => void, asked: number])[] = [
  ['reading the pull request', (world, fails) => Object.assign(world.forge, { onRead: fails }), 1],
  ['git', (world, fails) => Object.assign(world.git, { onPrepare: fails }), 1],
  ['the agent', (world, fails) => Object.assign(world.agent, { onReview: fails }), 2],
];
for (const [what, install, asked] of steps) {
  t.test(`a retryable failure of ${what} is tried again`, async (t) => {
    const world = await World.create(t);
    install(world, failsOnce(failure('sourceUnavailable', true)));
    world.runs.start();
    const runId = await world.dispatch();
    t.match(await world.ended(runId), { state: 'done', attempt: 2, error: null });
    t.equal(world.agent.asked.length, asked);
    t.equal(world.forge.of('review').length, 1);
  });
  t.test(`a permanent failure of ${what} ends the run with its code`, async (t) => {
    const world = await World.create(t);
    install(world, failsOnce(failure('forbidden', false)));
    world.runs.start();
    const runId = await world.dispatch();
    t.match(await world.ended(runId), { state: 'failed', attempt: 1, error: { code: 'forbidden' } });
    t.same(world.git.released, [[runId, 'failed']]);
    t.match(await world.item(), { reviewedHeadSha: null });
  });
}

t.test('the pause before the next attempt doubles, respects Retry-After and frees the slot', async (t) => {
  const world = await World.create(t, { AgentServer: { RetryBackoffSeconds: 100, MaxRetryBackoffSeconds: 150 } });
  const pauses: number[] = [];
  const errors = [failure('a', true), failure('b', true), failure('c', true, 500_000)];
  world.settings = { ...world.settings, AgentServer: { ...world.settings.AgentServer, MaxRunAttempts: 4 } };
  world.git.onPrepare = () => {
    const error = errors.shift();
    if (error) throw error;
  };
  world.runs.start();
  const runId = await world.dispatch();
  for (const attempt of [2, 3, 4]) {
    await world.until(async () => (await world.run(runId)).nextAttemptAt !== null && world.runs.active === 0);
    const { nextAttemptAt, state, attempt: next, error } = await world.run(runId);
    t.match([state, next, error], ['backingOff', attempt, { code: String }]);
    pauses.push(Math.round(((nextAttemptAt ?? 0) - (await world.store.now())) / 10_000) * 10);
    await world.pausesAreOver();
  }
  t.same(pauses, [100, 150, 500]);
  t.match(await world.ended(runId), { state: 'done', attempt: 4 });
});

t.test('a run fails after its last attempt', async (t) => {
  const world = await World.create(t, { AgentServer: { MaxRunAttempts: 2 } });
  world.agent.onReview = () => {
    throw failure('turnFailed', true);
  };
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'failed', attempt: 2, error: { code: 'turnFailed' } });
  t.equal(world.agent.asked.length, 2);
});

t.test('a head that moves during the fetch is read again, at most three times', async (t) => {
  const world = await World.create(t);
  let moves = 2;
  world.git.onPrepare = ({ headSha }) => {
    if (moves <= 0) return;
    moves -= 1;
    world.forge.push(`${headSha}+`);
    throw new GitError('reviewTargetMoved', 'moved', { actualHead: `${headSha}+` });
  };
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'done', attempt: 1, headSha: 'head-1++' });
  t.equal(world.forge.reads, 3);
  t.match(world.forge.of('review'), [{ request: { commitId: 'head-1++' } }], 'who asked hears of what is there');
  moves = 99;
  // The next attempt would read again.
  world.settings = { ...world.settings, AgentServer: { ...world.settings.AgentServer, RetryBackoffSeconds: 300 } };
  const again = await world.dispatch('mention');
  await world.until(async () => (await world.run(again)).attempt > 1);
  t.equal(world.forge.reads, 3 + 4);
});

for (const [state, install] of [
  ['preparing', (world: World, gate: Gate) => Object.assign(world.git, { onPrepare: () => gate.pass() })],
  [
    'reviewing',
    (world: World, gate: Gate) =>
      Object.assign(world.agent, { onReview: (_: unknown, { signal }: { signal: AbortSignal }) => gate.pass(signal) }),
  ],
] as const) {
  t.test(`a run cancelled in ${state} publishes nothing`, async (t) => {
    const { reasons, logger } = interruptReasons();
    const world = await World.create(t, { Review: { CheckRun: true } }, { logger });
    const gate = new Gate();
    install(world, gate);
    world.runs.start();
    const runId = await world.dispatch();
    await gate.reached.promise;
    t.match(await world.runs.cancel(runId), { isCancelRequested: true });
    await world.until(async () => (await world.run(runId)).state !== state);
    gate.open();
    t.match(await world.ended(runId), { state: 'cancelled' });
    await world.send();
    t.same(world.forge.of('review'), []);
    t.same(world.agent.interrupted, state === 'reviewing' ? ['thread-1'] : []);
    t.same(reasons, state === 'reviewing' ? ['cancelled'] : []);
    const checks = world.forge.of('checkRun').map(({ request }) => request['conclusion']);
    t.same(checks, state === 'reviewing' ? [undefined, 'cancelled'] : []);
    t.equal(await world.store.draftOfRun(runId), undefined);
  });
}

t.test('a waiting run is cancelled at once; a publishing run completes its publication', async (t) => {
  const world = await World.create(t);
  const waiting = await world.dispatch();
  t.match(await world.runs.cancel(waiting), { state: 'cancelled' });
  world.runs.start();
  const runId = await world.dispatch();
  await world.until(async () => (await world.run(runId)).state === 'publishing', { sends: false });
  await world.runs.cancel(runId);
  t.match(await world.ended(runId), { state: 'done' });
  await t.rejects(world.runs.cancel('none'), { code: 'notFound' });
});

t.test('a cancellation requested in another process takes effect at the renewal of the lease', async (t) => {
  const world = await World.create(t);
  const gate = new Gate();
  world.agent.onReview = (_, { signal }) => gate.pass(signal);
  world.runs.start();
  const runId = await world.dispatch();
  await gate.reached.promise;
  await world.store.requestCancel(runId);
  t.match(await world.ended(runId, { ms: 1_000 }), { state: 'cancelled' });
});

t.test('losing the lease stops the run and interrupts its turn', async (t) => {
  const world = await World.create(t);
  const gate = new Gate();
  world.agent.onReview = (_, { signal }) => gate.pass(signal);
  world.runs.start();
  const runId = await world.dispatch();
  await gate.reached.promise;
  await world.leasesRunOut();
  const limits = { global: 9, perRepository: 9, perSource: 9 };
  t.match(await world.store.claimRun('other', 60_000, limits), { run: { runId } });
  await world.until(() => world.runs.active === 0, { ms: 1_000 });
  t.ok(world.agent.hooks?.signal.aborted);
  t.match(await world.run(runId), { state: 'reviewing', finishedAt: null }, 'nothing more is written');
});

for (const [code, settings] of [
  ['agentStalled', { StallTimeoutSeconds: 60, RunTimeoutSeconds: 7_200 }],
  ['runTimedOut', { StallTimeoutSeconds: 7_200, RunTimeoutSeconds: 60 }],
] as const) {
  t.test(`${code}: the turn is interrupted and the review is retried`, async (t) => {
    const { reasons, logger } = interruptReasons();
    const world = await World.create(t, { AgentServer: settings }, { logger });
    const gate = new Gate();
    world.agent.onReview = (_, { signal }) => gate.pass(signal);
    world.runs.start();
    const runId = await world.dispatch();
    await gate.reached.promise;
    world.clock.advance(30_000);
    t.match(await world.run(runId), { state: 'reviewing' });
    if (code === 'agentStalled') world.agent.hooks?.onActivity();
    world.agent.onInterrupt = () => {
      world.agent.onReview = () => {};
    };
    await world.until(async () => (await world.run(runId)).attempt === 2, { ms: 1_000 });
    t.match(await world.run(runId), { error: { code } });
    t.match(await world.ended(runId), { state: 'done' });
    t.equal(world.forge.of('review').length, 1);
    t.ok(world.agent.interrupted.length >= 1);
    t.same(reasons, ['tooLong']);
  });
}

t.test('a newer head supersedes an automatic review that has not begun and is reviewed instead', async (t) => {
  const world = await World.create(t);
  t.equal(await world.runs.tick(), 1);
  t.equal(await world.runs.tick(), 0, 'the same head is queued once');
  world.forge.push('head-2');
  const [first] = (await world.store.runs({ limit: 10 })).rows;
  world.runs.start();
  t.match(await world.ended(first?.runId ?? ''), { state: 'superseded', error: { code: 'newerHead' } });
  await world.until(async () => (await world.item()).reviewedHeadSha === 'head-2');
  t.equal(world.forge.of('review').length, 1);
  t.equal(world.agent.asked.length, 1);
});

for (const state of ['merged', 'closed'] as const)
  t.test(
    `an automatic review of a pull request that is ${state} meanwhile stays a draft; a requested one is published`,
    async (t) => {
      const world = await World.create(t);
      const close = () => {
        if (world.forge.pull !== 'gone') world.forge.push(world.forge.pull.headSha, { state });
      };
      world.agent.onReview = close;
      await world.runs.tick();
      world.runs.start();
      const [run] = (await world.store.runs({ limit: 1 })).rows;
      await world.ended(run?.runId ?? '');
      const draft = await world.store.draftOfRun(run?.runId ?? '');
      t.match(draft, { status: 'draft', blockedBy: { code: 'notOpen', message: `The pull request is ${state}.` } });
      t.same(world.forge.published, []);
      await t.rejects(world.runs.publish(draft?.draftId ?? '', { override: false }), { code: 'draftBlocked' });

      world.forge.push('head-2', { state: 'open' });
      if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
      await world.ended(await world.dispatch('mention'));
      t.equal(world.forge.of('review').length, 1, 'a person asked');
    },
  );

t.test(
  'a head that arrives during a review waits; the older draft is blocked, and a user can publish it',
  async (t) => {
    const world = await World.create(t);
    const gate = new Gate();
    world.agent.onReview = () => gate.pass();
    await world.runs.tick();
    world.runs.start();
    await gate.reached.promise;
    world.forge.push('head-2');
    if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
    t.equal(await world.runs.tick(), 1);
    t.equal(world.agent.asked.length, 1, 'it is not begun again');
    gate.open();
    await world.until(async () => (await world.item()).reviewedHeadSha === 'head-2');
    t.equal(world.forge.of('review').length, 1);
    t.match(world.forge.of('review'), [{ request: { commitId: 'head-2' } }]);
    const older = (await world.store.drafts({ limit: 10 })).rows.find(({ headSha }) => headSha === 'head-1');
    t.match(older, { status: 'draft', blockedBy: { code: 'headMoved' } });
    const { draftId = '' } = older ?? {};
    await t.rejects(world.runs.publish(draftId, { override: false }), { code: 'draftBlocked' });
    await world.runs.publish(draftId, { override: true });
    await world.send();
    t.match(world.forge.of('review')[1], { request: { commitId: 'head-1' } }, 'at the head that was looked at');
    t.match(await world.item(), { reviewedHeadSha: 'head-2' });
  },
);

for (const [name, change] of [
  ['gone', 'gone'],
  ['merged', { state: 'merged' as const }],
] as const) {
  t.test(`a pull request that is ${name} is not reviewed`, async (t) => {
    const world = await World.create(t);
    const runId = await world.dispatch();
    if (change === 'gone') world.forge.pull = 'gone';
    else world.forge.push('head-1', change);
    world.runs.start();
    const code = change === 'gone' ? 'pullRequestGone' : 'pullRequestNotOpen';
    t.match(await world.ended(runId), { state: 'cancelled', error: { code } });
    t.same(world.agent.asked, []);
  });
}

t.test('an incremental review repeats no finding and resolves fixed ones', async (t) => {
  const world = await World.create(t);
  world.agent.findings = () => [
    finding(),
    finding({ title: 'The name says nothing', oldText: "const value = 'head-1';" }),
  ];
  await world.runs.tick();
  world.runs.start();
  await world.until(async () => (await world.item()).reviewedHeadSha === 'head-1');
  const open = await world.store.openFindings((await world.item()).itemId);
  t.equal(open.length, 2);
  world.forge.push('head-2');
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  world.agent.findings = () => [
    finding({ title: 'the value is NEVER checked' }),
    finding({ title: 'Another', oldText: 'start();' }),
  ];
  await world.runs.tick();
  await world.until(async () => (await world.item()).reviewedHeadSha === 'head-2');
  t.match(world.git.prepared.at(-1), { sinceSha: 'head-1' });
  t.match(world.agent.asked.at(-1), { openFindings: [{}, {}] });
  const second = world.forge.of('review').at(-1);
  t.match(second?.request, { comments: [{ body: /Another/ }] });
  t.equal((second?.request['comments'] as unknown[] | undefined)?.length, 1, 'what was told is not told again');
  t.match(world.forge.of('resolveThread'), [{ request: { findingId: open[1]?.findingId } }], 'its lines are gone');
  t.match(await world.store.finding(open[1]?.findingId ?? ''), { isResolved: true, resolution: 'outdated' });
  t.match(world.forge.of('summary').at(-1)?.request['body'], /1 of before still open[\s\S]*1 resolved/);

  world.forge.push('head-3');
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  world.agent.findings = () => [];
  world.agent.resolved = ({ openFindings }) =>
    openFindings.map(({ findingId }, index) => ({
      findingId,
      resolution: index === 0 ? 'fixed' : 'dismissed',
      note: 'x',
    }));
  await world.runs.tick();
  await world.until(async () => (await world.item()).reviewedHeadSha === 'head-3');
  await world.send();
  t.equal(world.forge.of('review').length, 2, 'a clean review is quiet');
  t.equal(world.forge.of('summary').length, 3, 'the summary that is there is kept up to date');
  t.match(
    await world.store.openFindings((await world.item()).itemId),
    [{ title: 'Another' }],
    'a model dismisses nothing',
  );
});

t.test('a clean review writes nothing at all', async (t) => {
  const world = await World.create(t);
  world.agent.findings = () => [];
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'done' });
  await world.send();
  t.same(world.forge.published, []);
  t.match(await world.store.draftOfRun(runId), { status: 'published', url: null });
});

t.test('without files to review the agent is not asked, and the draft states it', async (t) => {
  const world = await World.create(t, { Review: { IgnorePaths: ['src/**'] } });
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'done' });
  t.same([world.agent.asked, world.forge.published], [[], []]);
  t.match(await world.store.draftOfRun(runId), {
    summary: /exclude all changed files/,
    reviewedFiles: 0,
    totalFiles: 1,
    skippedFiles: [{ path: 'src/a.ts', reason: 'ignored' }],
  });
});

t.test('a draft with a secret cannot be published, automatically or by a user', async (t) => {
  const token = ['ghp', 'q8Zt3LmX0vRb7NcKp2YwHs5JdFg9UeTa1CiO'].join('_');
  const world = await World.create(t);
  world.agent.findings = () => [
    finding({ body: `The token ${token} is in the code.` }),
    finding({ title: '@bob said', oldText: 'start();' }),
  ];
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'done' });
  t.same(world.forge.published, []);
  const draft = await world.store.draftOfRun(runId);
  t.match(draft, { status: 'draft', blockedBy: { code: 'draftContainsSecret' } });
  t.notMatch(JSON.stringify(draft), token);
  t.notMatch(JSON.stringify(draft), '@bob');
  t.match(await world.item(), { reviewedHeadSha: null }, 'what is held back was not told');
  const { draftId = '', findings = [] } = draft ?? {};
  await t.rejects(world.runs.publish(draftId, { override: false }), { code: 'draftBlocked' });
  await world.store.updateFinding(findings[0]?.findingId ?? '', { body: `again: ${token}` });
  await t.rejects(world.runs.publish(draftId, { override: true }), {
    code: 'draftBlocked',
    details: { isOverridable: false },
  });
  await world.store.updateFinding(findings[0]?.findingId ?? '', { body: 'A token is in the code.' });
  await world.runs.publish(draftId, { override: true });
  await world.send();
  t.match(await world.store.draft(draftId), { status: 'published', blockedBy: null });
});

t.test('a review that the source rejects has failed and can be published again', async (t) => {
  const world = await World.create(t);
  world.forge.onSend = ({ kind }) => {
    if (kind === 'review') throw new Error('refused');
  };
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'failed', error: { code: 'publishFailed' } });
  const draft = await world.store.draftOfRun(runId);
  t.match(draft, { status: 'publishFailed' });
  world.forge.onSend = () => {};
  await world.runs.publish(draft?.draftId ?? '', { override: false });
  await world.send();
  t.match(await world.store.draftOfRun(runId), { status: 'published' });
  t.equal(world.forge.of('review').length, 1);
});

t.test(
  'settling a write twice has no effect; a failed write of a secondary kind does not fail the draft',
  async (t) => {
    const world = await World.create(t);
    world.forge.onSend = ({ kind }) => {
      if (kind === 'summary') throw new Error('refused');
    };
    world.runs.start();
    const runId = await world.dispatch();
    t.match(await world.ended(runId), { state: 'done' });
    const draft = await world.store.draftOfRun(runId);
    t.match(draft, { status: 'published', warnings: [/summary could not be posted/] });
    for (const write of (await world.store.writes({ runId, limit: 10 })).rows) await world.runs.settleWrite(write);
    t.strictSame(await world.store.draftOfRun(runId), draft);
  },
);

t.test(
  'the least severe findings beyond MaxFindings go to the summary; those below the minimum severity are dropped',
  async (t) => {
    const world = await World.create(t, { Review: { MaxFindings: 1 } });
    world.git.baseFiles = {
      '.oratorio-review.json': '{"minSeverity":"minor","instructions":"Look at names."}',
      'AGENTS.md': 'Be kind.',
    };
    world.agent.findings = () => [
      finding({ severity: 'note', title: 'Small thing', oldText: "const value = 'head-1';" }),
      finding({ severity: 'minor', title: 'Second matter', oldText: 'start();' }),
      finding({ severity: 'critical', newText: 'use(check(value));' }),
    ];
    world.runs.start();
    const runId = await world.dispatch();
    await world.ended(runId);
    t.match(world.agent.asked[0], { maxFindings: 1, instructions: ['Look at names.', 'Be kind.'] });
    t.match(world.forge.of('review')[0]?.request, {
      body: /1 finding has no line/,
      comments: [{ body: /Critical[\s\S]*```suggestion\nuse\(check\(value\)\);\n```/ }],
    });
    t.match(world.forge.of('summary')[0]?.request['body'], /Second matter/);
    t.notMatch(JSON.stringify(world.forge.published), 'Small thing');
    const { findings = [] } = (await world.store.draftOfRun(runId)) ?? {};
    t.same(
      findings.map(({ isPublished, placement }) => [isPublished, placement]),
      [
        [true, 'inline'],
        [true, 'summary'],
      ],
    );
  },
);

t.test('invalid rules are ignored with a warning in the draft', async (t) => {
  const world = await World.create(t);
  world.git.baseFiles = { '.oratorio-review.json': '{"minSeverity":"harsh"}' };
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'done' });
  t.match(await world.store.draftOfRun(runId), { warnings: [/oratorio-review\.json.*minSeverity/] });
});

t.test('the rules of the base commit exclude automatic reviews', async (t) => {
  const world = await World.create(t);
  world.git.baseFiles = { '.oratorio-review.json': '{"ignoreAuthors":["alice"]}' };
  await world.runs.tick();
  world.runs.start();
  const [run] = (await world.store.runs({ limit: 1 })).rows;
  t.match(await world.ended(run?.runId ?? ''), { state: 'cancelled', error: { code: 'ignoredAuthor' } });
  t.match(await world.ended(await world.dispatch('mention')), { state: 'done' });
});

t.test('changed settings apply at once', async (t) => {
  const world = await World.create(t, { Automation: { AutoReviewPublishEnabled: false } });
  await world.runs.tick();
  world.runs.start();
  const [run] = (await world.store.runs({ limit: 1 })).rows;
  t.match(await world.ended(run?.runId ?? ''), { state: 'done' });
  const draft = await world.store.draftOfRun(run?.runId ?? '');
  t.match(draft, { status: 'draft', blockedBy: null }, 'an automatic review is a draft where that is not allowed');
  world.settings = { ...world.settings, GitHub: { ...world.settings.GitHub, WritesEnabled: false } };
  await t.rejects(world.runs.publish(draft?.draftId ?? '', { override: true }), { code: 'githubWritesDisabled' });
  t.match(await world.ended(await world.dispatch('mention')), { state: 'done' });
  t.same(world.forge.published, []);
  world.settings = { ...world.settings, AgentServer: { ...world.settings.AgentServer, RepositoryWorkspaceRoutes: [] } };
  await t.rejects(world.dispatch(), { code: 'repositoryNotRouted' });
  await world.runs.discard(draft?.draftId ?? '');
  t.match(await world.store.draft(draft?.draftId ?? ''), { status: 'discarded' });
});

t.test('a user can resolve a finding once', async (t) => {
  const world = await World.create(t);
  world.runs.start();
  await world.ended(await world.dispatch());
  await world.send();
  const [open] = await world.store.openFindings((await world.item()).itemId);
  const findingId = open?.findingId ?? '';
  await world.runs.resolveFinding(findingId, 'dismissed', 'as meant');
  await world.send();
  t.match(await world.store.finding(findingId), { isResolved: true, resolution: 'dismissed', threadNodeId: 'node' });
  await t.rejects(world.runs.resolveFinding(findingId, 'fixed', null), { code: 'invalidState' });
  await t.rejects(world.runs.resolveFinding('none', 'fixed', null), { code: 'notFound' });
  const again = await world.dispatch();
  await world.ended(again);
  t.match(await world.store.draftOfRun(again), { findings: [] }, 'what somebody dismissed is not said again');
});

t.test('automatic reviews pause after PauseAfter until a user resumes them', async (t) => {
  const world = await World.create(t, { Review: { PauseAfter: 1 } });
  world.runs.start();
  t.equal(await world.runs.tick(), 1);
  await world.until(async () => (await world.item()).reviewedHeadSha === 'head-1');
  world.forge.push('head-2');
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  t.equal(await world.runs.tick(), 0);
  await world.ended(await world.dispatch());
  t.match(await world.item(), { automaticReviews: 0, reviewedHeadSha: 'head-2' });
});

t.test('a head that waited during a review is reviewed incrementally after it', async (t) => {
  const world = await World.create(t);
  const gate = new Gate();
  world.agent.onReview = () => gate.pass();
  world.runs.start();
  const first = await world.dispatch('mention');
  await gate.reached.promise;
  world.forge.push('head-2');
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  t.equal(await world.runs.tick(), 1);
  gate.open();
  t.match(await world.ended(first), { state: 'done' });
  await world.until(async () => (await world.item()).reviewedHeadSha === 'head-2');
  t.same(
    world.git.prepared.map(({ headSha, sinceSha }) => [headSha, sinceSha]),
    [
      ['head-1', null],
      ['head-2', 'head-1'],
    ],
  );
});
