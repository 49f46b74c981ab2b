import type { ReviewTrigger } from '../../protocol/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import type { StoredItem } from '../store/index.ts';
import { globMatches } from './globs.ts';

/** Why a pull request is not reviewed. Stable: shown to people. */
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

/** Members see their own forks through; `none` and `all` speak for themselves. */
const members: ReadonlySet<string> = new Set(['OWNER', 'MEMBER', 'COLLABORATOR']);
const refusesFork: Readonly<Record<BackendSettings['Review']['Forks'], (association: string) => boolean>> = {
  all: () => false,
  none: () => true,
  collaborators: (association) => !members.has(association),
};
/** It was dispatched before, so this is a push. */
const isPush: Refuses = ({ item }) => item.dispatchedHeadSha !== null && item.dispatchedHeadSha !== item.headSha;

/** Nobody is reviewed against these, whoever asks. */
const safety: readonly Rule[] = [
  ['repositoryDisabled', ({ isEnabled }) => !isEnabled],
  ['repositoryNotRouted', ({ hasWorkspaceRoute }) => !hasWorkspaceRoute],
  ['pullRequestNotOpen', ({ item }) => item.state !== 'open'],
];

/** These keep it quiet where nobody has asked. */
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
      review.BaseBranches.length > 0 && !review.BaseBranches.some((glob) => globMatches(glob, item.baseRef)),
  ],
  ['paused', ({ item }) => item.isPaused],
  ['pausedAfterReviews', ({ item, review }) => review.PauseAfter > 0 && item.automaticReviews >= review.PauseAfter],
  ['pushesNotReviewed', (facts) => facts.review.OnPush === 'never' && isPush(facts)],
  ['onRequestOnly', ({ review }) => review.OnPush === 'onRequest'],
];

const asked: readonly Rule[] = safety;
const rules: Readonly<Record<ReviewTrigger, readonly Rule[]>> = {
  auto: [...safety, ...noise],
  mention: asked,
  manual: asked,
  checkRerequest: asked,
};

/** Whether a pull request is reviewed. The first rule that refuses decides. @returns why not, or null */
export function whyIneligible(trigger: ReviewTrigger, facts: EligibilityFacts): IneligibleCode | null {
  return rules[trigger].find(([, refuses]) => refuses(facts))?.[0] ?? null;
}
