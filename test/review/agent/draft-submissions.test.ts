import t from 'tap';
import type { DynamicToolCall } from '../../../src/protocol/index.ts';
import { DraftSubmissions } from '../../../src/review/agent/draft-submissions.ts';
import { reviewTools } from '../../../src/review/agent/tools.ts';
import { after, assignmentOf, type Files, faulty, openFinding } from './harness.ts';

let number = 0;
const callOf = (tool: string, args: unknown, callId?: string): DynamicToolCall => {
  number += 1;
  const about = { threadId: 'thread_1', turnId: 'turn_001', callId: callId ?? `call_${number}` };
  return { ...about, tool, arguments: args as Record<string, unknown> };
};
const finding = {
  severity: 'major',
  title: 'Off by one',
  body: 'Reads past the end.',
  path: 'src/total.ts',
  oldText: faulty,
};
const draft = (...findings: object[]) => ({ summary: 'A loop.', findings });

t.test('a call that is asked twice is answered as before, and counts once', async (t) => {
  const submissions = new DraftSubmissions(assignmentOf(t.testdir()), { submissions: 1 });
  const first = await submissions.answer(callOf('SubmitReviewDraft', draft(finding), 'same'));
  const again = await submissions.answer(callOf('SubmitReviewDraft', draft(finding), 'same'));
  t.equal(again, first);
  t.match(first, { success: true });
  t.match(await submissions.answer(callOf('SubmitReviewDraft', draft())), { success: false, errorCode: 'draftFinal' });
  t.equal(submissions.draft?.findings.length, 1);
  submissions.reopen();
  t.match(await submissions.answer(callOf('SubmitReviewDraft', draft())), { success: true });
  t.equal(submissions.draft?.findings.length, 0, 'after a reminder it may be handed in anew');
});

t.test('the last draft holds, in the order in which they came', async (t) => {
  const submissions = new DraftSubmissions(assignmentOf(t.testdir()), { submissions: 5 });
  await Promise.all(
    ['one', 'two', 'three'].map((title) =>
      submissions.answer(callOf('SubmitReviewDraft', draft({ ...finding, title }))),
    ),
  );
  t.equal(submissions.draft?.findings[0]?.finding.title, 'three');
});

t.test('findings of other drafts that the last valid one lacks are listed with the reason', async (t) => {
  const submissions = new DraftSubmissions(assignmentOf(t.testdir()), { submissions: 3 });
  const hand = (...findings: object[]) => submissions.answer(callOf('SubmitReviewDraft', draft(...findings)));
  const other = { ...finding, title: 'Prices may be missing', oldText: '  return sum;' };
  await hand(finding, other, { ...finding, title: 'Unknown place', oldText: 'not there' });
  await hand({ ...finding, severity: 'fatal', title: 'Of an invalid draft' }, finding);
  t.strictSame(
    submissions.withdrawn.map(({ title, reason }) => `${title}: ${reason}`),
    ['Of an invalid draft: notTaken'],
  );
  await hand({ ...finding, title: 'Off by one at the end' }, { ...finding, title: 'Unknown place', oldText: faulty });
  t.match(await hand(other, { ...finding, title: 'Too late' }), { errorCode: 'draftFinal' });
  t.match(submissions.draft?.findings, [{ finding: { title: 'Off by one at the end' } }, {}]);
  t.strictSame(
    submissions.withdrawn.map(({ title, reason, line }) => `${title}: ${reason} ${line}`),
    ['Prices may be missing: withdrawn 4', 'Of an invalid draft: withdrawn undefined', 'Too late: notTaken undefined'],
  );
});

t.test('a suggestion takes the place of whole lines', async (t) => {
  const submissions = new DraftSubmissions(assignmentOf(t.testdir()), { submissions: 5 });
  const newText = faulty.replace('<=', '<');
  const answer = await submissions.answer(callOf('SubmitReviewDraft', draft({ ...finding, newText })));
  t.match(answer, { success: true, contentItems: [{ text: /1\. src\/total\.ts: line 3, RIGHT/ }] });
  t.match(submissions.draft?.findings, [{ anchor: { placement: 'inline', line: 3, replacement: newText } }]);
});

t.test('text of a file outside the diff becomes a comment on the file, without an error for the model', async (t) => {
  const lines = Array.from({ length: 30 }, (_, at) => `const line${at} = ${at};`);
  const old: Files = { 'a.ts': `${lines.join('\n')}\n` };
  const now: Files = { 'a.ts': `${lines.join('\n')}\nconst last = 1;\n` };
  const submissions = new DraftSubmissions(assignmentOf(t.testdir(), { old, now }), { submissions: 5 });
  const answer = await submissions.answer(
    callOf('SubmitReviewDraft', draft({ ...finding, path: 'a.ts', oldText: 'const line2 = 2;' })),
  );
  t.match(answer, { success: true });
  t.match(submissions.draft, { findings: [{ anchor: { placement: 'file', reason: 'outsideDiff' } }], warnings: [] });
});

t.test('paths are taken as models write them, and characters that were spelled out are meant', async (t) => {
  const trick = 'const isAdmin = false; /*\u202e } \u2066if (isAdmin)\u2069 \u2066*/';
  const now: Files = { ...after, 'src/b.ts': `${trick}\n` };
  const submissions = new DraftSubmissions(assignmentOf(t.testdir(), { now }), { submissions: 5 });
  const shown = 'const isAdmin = false; /*⟨U+202E⟩ } ⟨U+2066⟩if (isAdmin)⟨U+2069⟩ ⟨U+2066⟩*/';
  await submissions.answer(
    callOf(
      'SubmitReviewDraft',
      draft({ ...finding, path: 'b/src/total.ts' }, { ...finding, path: 'src/b.ts', oldText: shown }),
    ),
  );
  t.match(submissions.draft?.findings, [
    { finding: { path: 'src/total.ts' }, anchor: { placement: 'inline', line: 3 } },
    { finding: { path: 'src/b.ts', oldText: trick }, anchor: { placement: 'inline', line: 1 } },
  ]);
});

t.test('a tool that is not ours is refused', async (t) => {
  const submissions = new DraftSubmissions(assignmentOf(t.testdir()), { submissions: 5 });
  t.match(await submissions.answer(callOf('DeleteEverything', {})), { success: false, errorCode: 'toolUnknown' });
});

t.test('a later decision on an open finding replaces the first', async (t) => {
  const submissions = new DraftSubmissions(
    assignmentOf(t.testdir(), { more: { openFindings: [openFinding('f-1')] } }),
    {
      submissions: 5,
    },
  );
  await submissions.answer(callOf('ResolveReviewFinding', { findingId: 'f-1', resolution: 'fixed' }));
  await submissions.answer(callOf('ResolveReviewFinding', { findingId: 'f-1', resolution: 'dismissed', note: null }));
  t.strictSame(submissions.resolved, [{ findingId: 'f-1', resolution: 'dismissed', note: null }]);
});

t.test('the schemas describe every field and list the required ones', async (t) => {
  const [submit, resolve] = reviewTools();
  t.match(submit?.inputSchema, {
    type: 'object',
    required: ['summary', 'findings'],
    properties: {
      findings: {
        maxItems: 200,
        items: {
          required: ['severity', 'title', 'body', 'path'],
          properties: {
            severity: { enum: ['critical', 'major', 'minor', 'note'] },
            oldText: { type: 'string', description: /copied exactly/ },
            side: { enum: ['RIGHT', 'LEFT'] },
          },
        },
      },
    },
  });
  t.match(resolve?.inputSchema, { required: ['findingId', 'resolution'] });
});

t.test('a finding is known by the name that its file had before', async (t) => {
  const lines = Array.from({ length: 20 }, (_, at) => `const line${at} = ${at};`);
  const old: Files = { 'src/old.ts': `${lines.join('\n')}\n` };
  const now: Files = { 'src/new.ts': `${lines.join('\n')}\nconst last = 1;\n` };
  const oldText = 'const last = 1;';
  const submissions = new DraftSubmissions(assignmentOf(t.testdir(), { old, now }), { submissions: 5 });
  for (const path of ['src/new.ts', 'src/old.ts']) {
    await submissions.answer(callOf('SubmitReviewDraft', draft({ ...finding, path, oldText })));
    t.match(submissions.draft?.findings, [{ finding: { path: 'src/new.ts' }, oldPath: 'src/old.ts' }], path);
  }
});
