import { nameTest } from '../../lib/index.ts';
import type { ReviewTrigger } from '../../protocol/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import type { StoredItem } from '../store/index.ts';

/** Reasons for not reviewing a pull request. Stable, because the page and the API show them. */
export const ineligibleCodes = [
  'repositoryDisabled',
  'repositoryNotRouted',
  'pullRequestNotOpen',
  'draftPullRequest',
  'fork',
  'bot',
  'ignoredAuthor',
  'ignoredLabel',
  'ignoredTitle',
  'baseBranch',
  'paused',
  'pausedAfterReviews',
  'pushesNotReviewed',
  'onRequestOnly',
] as const;
export type IneligibleCode = (typeof ineligibleCodes)[number];

export interface EligibilityFacts {
  readonly item: Pick<
    StoredItem,
    | 'state'
    | 'isDraft'
    | 'isFork'
    | 'isBot'
    | 'author'
    | 'authorAssociation'
    | 'labels'
    | 'title'
    | 'baseRef'
    | 'isPaused'
    | 'automaticReviews'
    | 'dispatchedHeadSha'
    | 'headSha'
  >;
  readonly review: Pick<
    BackendSettings['Review'],
    | 'OnPush'
    | 'PauseAfter'
    | 'Drafts'
    | 'Forks'
    | 'Bots'
    | 'BaseBranches'
    | 'IgnoreTitles'
    | 'IgnoreLabels'
    | 'IgnoreAuthors'
  >;
  readonly isEnabled: boolean;
  readonly hasWorkspaceRoute: boolean;
}
type Refuses = (facts: EligibilityFacts) => boolean;
type Rule = readonly [IneligibleCode, Refuses];

const has = (list: readonly string[], word: string): boolean =>
  list.some((each) => each.toLowerCase() === word.toLowerCase());

/** Author associations whose forks `collaborators` accepts. */
const members: ReadonlySet<string> = new Set(['OWNER', 'MEMBER', 'COLLABORATOR']);
const refusesFork: Readonly<Record<BackendSettings['Review']['Forks'], (association: string) => boolean>> = {
  all: () => false,
  none: () => true,
  collaborators: (association) => !members.has(association),
};
/** An earlier head was dispatched, so this one is a push. */
const isPush: Refuses = ({ item }) => item.dispatchedHeadSha !== null && item.dispatchedHeadSha !== item.headSha;

/** Rules for all triggers. */
const safety: readonly Rule[] = [
  ['repositoryDisabled', ({ isEnabled }) => !isEnabled],
  ['repositoryNotRouted', ({ hasWorkspaceRoute }) => !hasWorkspaceRoute],
  ['pullRequestNotOpen', ({ item }) => item.state !== 'open'],
];

/** Rules for automatic reviews only. */
const noise: readonly Rule[] = [
  ['draftPullRequest', ({ item, review }) => item.isDraft && !review.Drafts],
  ['fork', ({ item, review }) => item.isFork && refusesFork[review.Forks](item.authorAssociation)],
  ['bot', ({ item, review }) => item.isBot && !review.Bots],
  ['ignoredAuthor', ({ item, review }) => has(review.IgnoreAuthors, item.author)],
  ['ignoredLabel', ({ item, review }) => item.labels.some((label) => has(review.IgnoreLabels, label))],
  [
    'ignoredTitle',
    ({ item, review }) => review.IgnoreTitles.some((part) => item.title.toLowerCase().includes(part.toLowerCase())),
  ],
  [
    'baseBranch',
    ({ item, review }) =>
      review.BaseBranches.length > 0 && !review.BaseBranches.some((glob) => nameTest(glob)(item.baseRef)),
  ],
  ['paused', ({ item }) => item.isPaused],
  ['pausedAfterReviews', ({ item, review }) => review.PauseAfter > 0 && item.automaticReviews >= review.PauseAfter],
  ['pushesNotReviewed', (facts) => facts.review.OnPush === 'never' && isPush(facts)],
  ['onRequestOnly', ({ review }) => review.OnPush === 'onRequest'],
];

const requested: readonly Rule[] = safety;
const rules: Readonly<Record<ReviewTrigger, readonly Rule[]>> = {
  auto: [...safety, ...noise],
  mention: requested,
  manual: requested,
  checkRerequest: requested,
};

/** Returns the reason of the first rule that refuses a review, or null for an eligible pull request. */
export function whyIneligible(trigger: ReviewTrigger, facts: EligibilityFacts): IneligibleCode | null {
  return rules[trigger].find(([, refuses]) => refuses(facts))?.[0] ?? null;
}
