import type { ItemFacts } from '../store/index.ts';
import type { PullAnswer } from './answers.ts';

/** GitHub's name for a deleted account. */
const ghost = 'ghost';

/** Stored facts of a pull request. One whose fork was deleted still counts as from a fork. */
export function factsOf(repositoryKey: string, pull: PullAnswer): ItemFacts {
  const { base, head, user } = pull;
  const author = user?.login ?? ghost;
  return {
    repositoryKey,
    number: pull.number,
    title: pull.title,
    description: pull.body ?? '',
    author,
    authorAssociation: pull.author_association,
    isBot: user?.type === 'Bot' || author.endsWith('[bot]'),
    state: pull.merged_at ? 'merged' : pull.state,
    isDraft: pull.draft,
    isFork: head.repo?.id !== base.repo.id,
    labels: pull.labels.map(({ name }) => name),
    baseRef: base.ref,
    baseSha: base.sha,
    headRef: head.ref,
    headSha: head.sha,
    url: pull.html_url,
    updatedAt: Date.parse(pull.updated_at),
  };
}
