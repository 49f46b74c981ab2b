import fc from 'fast-check';
import t from 'tap';
import { type EligibilityFacts, ineligibleCodes, whyIneligible } from '../../../src/review/runs/eligibility.ts';

const plain: EligibilityFacts = {
  item: {
    state: 'open',
    isDraft: false,
    isFork: false,
    isBot: false,
    author: 'alice',
    authorAssociation: 'NONE',
    labels: [],
    title: 'A change',
    baseRef: 'main',
    isPaused: false,
    automaticReviews: 0,
    dispatchedHeadSha: null,
    headSha: 'b',
  },
  review: {
    OnPush: 'incremental',
    PauseAfter: 5,
    Drafts: false,
    Forks: 'collaborators',
    Bots: false,
    BaseBranches: [],
    IgnoreTitles: ['WIP'],
    IgnoreLabels: ['skip-review'],
    IgnoreAuthors: ['mallory'],
  },
  isEnabled: true,
  hasWorkspaceRoute: true,
};
type Change = Partial<Omit<EligibilityFacts, 'item' | 'review'>> & {
  readonly item?: Partial<EligibilityFacts['item']>;
  readonly review?: Partial<EligibilityFacts['review']>;
};
const facts = ({ item, review, ...rest }: Change): EligibilityFacts => ({
  ...plain,
  ...rest,
  item: { ...plain.item, ...item },
  review: { ...plain.review, ...review },
});

const safety = ['repositoryDisabled', 'repositoryNotRouted', 'pullRequestNotOpen'];
const table: readonly (readonly [(typeof ineligibleCodes)[number] | null, string, Change])[] = [
  [null, 'anything plain', {}],
  ['repositoryDisabled', 'not configured any more', { isEnabled: false }],
  ['repositoryNotRouted', 'no checkout', { hasWorkspaceRoute: false }],
  ['pullRequestNotOpen', 'closed', { item: { state: 'closed' } }],
  ['pullRequestNotOpen', 'merged', { item: { state: 'merged' } }],
  ['draftPullRequest', 'a draft', { item: { isDraft: true } }],
  [null, 'a draft where drafts are wanted', { item: { isDraft: true }, review: { Drafts: true } }],
  ['fork', 'a fork of a stranger', { item: { isFork: true } }],
  [null, 'a fork of a member', { item: { isFork: true, authorAssociation: 'MEMBER' } }],
  ['fork', 'a fork of a contributor', { item: { isFork: true, authorAssociation: 'CONTRIBUTOR' } }],
  ['fork', 'any fork', { item: { isFork: true, authorAssociation: 'OWNER' }, review: { Forks: 'none' } }],
  [null, 'any fork is fine', { item: { isFork: true }, review: { Forks: 'all' } }],
  ['bot', 'a bot', { item: { isBot: true } }],
  [null, 'a bot where bots are wanted', { item: { isBot: true }, review: { Bots: true } }],
  ['ignoredAuthor', 'in any case', { item: { author: 'Mallory' } }],
  ['ignoredLabel', 'in any case', { item: { labels: ['x', 'Skip-Review'] } }],
  ['ignoredTitle', 'in any case', { item: { title: 'wip: nothing yet' } }],
  ['baseBranch', 'another base', { review: { BaseBranches: ['release/*'] } }],
  [null, 'a base by a pattern', { review: { BaseBranches: ['release/*', 'ma?n'] } }],
  ['paused', 'somebody has paused it', { item: { isPaused: true } }],
  ['pausedAfterReviews', 'often enough', { item: { automaticReviews: 5 } }],
  [null, 'never often enough', { item: { automaticReviews: 99 }, review: { PauseAfter: 0 } }],
  ['pushesNotReviewed', 'a push', { item: { dispatchedHeadSha: 'a' }, review: { OnPush: 'never' } }],
  [null, 'the first head', { review: { OnPush: 'never' } }],
  ['onRequestOnly', 'only on request', { review: { OnPush: 'onRequest' } }],
];
for (const [code, what, change] of table) {
  t.test(`${code ?? 'reviewed'}: ${what}`, async (t) => {
    t.equal(whyIneligible('auto', facts(change)), code);
    const isSafety = code !== null && safety.includes(code);
    for (const trigger of ['mention', 'manual', 'checkRerequest'] as const)
      t.equal(whyIneligible(trigger, facts(change)), isSafety ? code : null, `${trigger} asks for it`);
  });
}

t.test('every ineligible code has a row', async (t) => {
  t.same(new Set(table.flatMap(([code]) => code ?? [])), new Set(ineligibleCodes));
});

const list = fc.array(fc.constantFrom('a', 'B', 'wip', 'main', 're*'), { maxLength: 3 });
const anyFacts: fc.Arbitrary<EligibilityFacts> = fc.record({
  isEnabled: fc.boolean(),
  hasWorkspaceRoute: fc.boolean(),
  item: fc.record({
    state: fc.constantFrom('open' as const, 'closed' as const, 'merged' as const),
    isDraft: fc.boolean(),
    isFork: fc.boolean(),
    isBot: fc.boolean(),
    author: fc.constantFrom('a', 'b', 'c'),
    authorAssociation: fc.constantFrom('OWNER', 'MEMBER', 'COLLABORATOR', 'CONTRIBUTOR', 'NONE', 'FIRST_TIMER'),
    labels: list,
    title: fc.string(),
    baseRef: fc.constantFrom('main', 'release', 'x/y'),
    isPaused: fc.boolean(),
    automaticReviews: fc.nat(6),
    dispatchedHeadSha: fc.constantFrom(null, 'a', 'b'),
    headSha: fc.constantFrom('a', 'b'),
  }),
  review: fc.record({
    OnPush: fc.constantFrom('never' as const, 'incremental' as const, 'full' as const, 'onRequest' as const),
    PauseAfter: fc.nat(6),
    Drafts: fc.boolean(),
    Forks: fc.constantFrom('none' as const, 'collaborators' as const, 'all' as const),
    Bots: fc.boolean(),
    BaseBranches: list,
    IgnoreTitles: list,
    IgnoreLabels: list,
    IgnoreAuthors: list,
  }),
});

t.test('a requested review is refused only by the rules for all triggers', async (t) => {
  fc.assert(
    fc.property(anyFacts, (facts) => {
      const [automatic, asked] = [whyIneligible('auto', facts), whyIneligible('mention', facts)];
      // A rule that refuses a requested review refuses an automatic one for the same reason, and an eligible automatic review is
      // eligible on request, too.
      return asked === null ? automatic === null || !safety.includes(automatic) : automatic === asked;
    }),
    { numRuns: 500, seed: 20_261_121 },
  );
  t.pass();
});

t.test('a fork of a non-member is not reviewed automatically unless all forks are', async (t) => {
  fc.assert(
    fc.property(anyFacts, (facts) => {
      const { isFork, authorAssociation } = facts.item;
      const isForkOfOther = isFork && !['OWNER', 'MEMBER', 'COLLABORATOR'].includes(authorAssociation);
      return !isForkOfOther || facts.review.Forks === 'all' || whyIneligible('auto', facts) !== null;
    }),
    { numRuns: 500, seed: 20_261_121 },
  );
  t.pass();
});
