/** What is said below a pull request to somebody who gave a command. Mentions nobody; holds nothing that others wrote. */
import type { StoredItem, StoredRun } from '../store/index.ts';

/** Why, by the code that is kept with the command. */
const refusals: Readonly<Record<string, string>> = {
  githubCommentCommandBotRejected: 'Commands are taken from people only.',
  githubCommentCommandActorUnauthorized: 'Commands are taken only from people who may write to this repository.',
  githubCommentCommandRepositoryNotConfigured: 'This repository is not set up for reviews.',
  githubCommentCommandWorkspaceNotConfigured:
    'No workspace is set up for this repository, so it cannot be reviewed. Whoever runs this backend can add a route.',
  githubCommentCommandTargetInvalid: 'This pull request is not open.',
  githubCommentCommandMultiline: 'A command is one line, and nothing else in the comment.',
  githubCommentCommandVerbRequired: 'Say what is to be done.',
  githubCommentCommandArgumentsInvalid: 'This command takes nothing after it.',
  githubCommentCommandFocusRequired: 'Say what the review should look at.',
  githubCommentCommandFocusTooLong: 'What the review should look at is too long: 500 characters at most.',
  activeRunExists: 'A review of this pull request is under way already.',
  repositoryNotRouted: 'No workspace is set up for this repository, so it cannot be reviewed.',
};

export const refusalText = (errorCode: string, handle: string): string =>
  `${refusals[errorCode] ?? 'This cannot be done at the moment.'} (\`${errorCode}\`)\n\n${helpText(handle)}`;

const words: readonly (readonly [string, string])[] = [
  ['review', 'reviews what is new since the last review'],
  ['review for <what>', 'the same, with an eye on something'],
  ['full review', 'reviews the whole change'],
  ['pause', 'no automatic reviews of this pull request'],
  ['resume', 'automatic reviews again'],
  ['resolve', 'all open findings are done with'],
  ['cancel', 'ends the review that is under way'],
  ['status', 'tells how things stand'],
  ['help', 'tells this'],
];

export const helpText = (handle: string): string =>
  ['Commands:', '', ...words.map(([verb, what]) => `- \`@${handle} ${verb}\`: ${what}`)].join('\n');

export function statusText(item: StoredItem, run: StoredRun | undefined, openFindings: number): string {
  const lines = [
    run
      ? `The last review (\`${run.headSha.slice(0, 12)}\`) is ${stateInWords[run.state]}.`
      : 'There was no review yet.',
    item.reviewedHeadSha === null
      ? undefined
      : item.reviewedHeadSha === item.headSha
        ? 'The present head has been reviewed.'
        : `The present head (\`${item.headSha.slice(0, 12)}\`) has not been reviewed.`,
    `Open findings: ${openFindings}.`,
    item.isPaused ? 'Automatic reviews are paused.' : undefined,
  ];
  return lines.filter((line) => line !== undefined).join('\n');
}

const stateInWords: Readonly<Record<StoredRun['state'], string>> = {
  queued: 'waiting for its turn',
  preparing: 'being prepared',
  reviewing: 'under way',
  drafting: 'being written down',
  publishing: 'being published',
  backingOff: 'waiting for its next attempt',
  cancelling: 'being ended',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  superseded: 'superseded by a newer head',
};
