/** Replies to commands on a pull request. They mention no user and contain no text from users. */
import type { StoredItem, StoredRun } from '../store/index.ts';

/** Reason of a refusal, by the error code saved with the command. */
const refusals: Readonly<Record<string, string>> = {
  githubCommentCommandBotRejected: 'Bots cannot give commands.',
  githubCommentCommandActorUnauthorized: 'Only users with write access to this repository can give commands.',
  githubCommentCommandRepositoryNotConfigured: 'This repository is not configured for reviews.',
  githubCommentCommandWorkspaceNotConfigured:
    'This repository has no workspace, so it cannot be reviewed. The operator of the review backend can add a route.',
  githubCommentCommandTargetInvalid: 'This pull request is not open.',
  githubCommentCommandThreadUnknown:
    'This thread is not about an open finding. Comment on the pull request to resolve all findings.',
  githubCommentCommandMultiline: 'The command must be the only line of the comment.',
  githubCommentCommandVerbRequired: 'The command is missing.',
  githubCommentCommandArgumentsInvalid: 'This command takes no arguments.',
  githubCommentCommandFocusRequired: 'The focus after “for” is missing.',
  githubCommentCommandFocusTooLong: 'The focus is too long: at most 500 characters.',
  activeRunExists: 'A review of this pull request is running already.',
  repositoryNotRouted: 'This repository has no workspace, so it cannot be reviewed.',
};

export const refusalText = (errorCode: string, handle: string): string =>
  `${refusals[errorCode] ?? 'The command failed.'} (\`${errorCode}\`)\n\n${helpText(handle)}`;

const commands: readonly (readonly [string, string])[] = [
  ['review', 'review the changes since the last review'],
  ['review for <focus>', 'the same, with a focus'],
  ['full review', 'review the whole pull request'],
  ['pause', 'stop automatic reviews of this pull request'],
  ['resume', 'resume automatic reviews'],
  ['resolve', 'resolve all open findings; in the thread of a finding, this one'],
  ['cancel', 'cancel the running review'],
  ['status', 'show the state of the review'],
  ['help', 'list the commands'],
];

export const helpText = (handle: string): string =>
  ['Commands:', '', ...commands.map(([verb, effect]) => `- \`@${handle} ${verb}\`: ${effect}`)].join('\n');

export function statusText(item: StoredItem, run: StoredRun | undefined, openFindings: number): string {
  const lines = [
    run
      ? `The last review (\`${run.headSha.slice(0, 12)}\`) is ${stateInWords[run.state]}.`
      : 'This pull request has not been reviewed yet.',
    item.reviewedHeadSha === null
      ? undefined
      : item.reviewedHeadSha === item.headSha
        ? 'The current head has been reviewed.'
        : `The current head (\`${item.headSha.slice(0, 12)}\`) has not been reviewed.`,
    `Open findings: ${openFindings}.`,
    item.isPaused ? 'Automatic reviews are paused.' : undefined,
  ];
  return lines.filter((line) => line !== undefined).join('\n');
}

const stateInWords: Readonly<Record<StoredRun['state'], string>> = {
  queued: 'queued',
  preparing: 'being prepared',
  reviewing: 'running',
  drafting: 'being drafted',
  publishing: 'being published',
  backingOff: 'waiting for its next attempt',
  cancelling: 'being cancelled',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  superseded: 'superseded by a newer head',
};
