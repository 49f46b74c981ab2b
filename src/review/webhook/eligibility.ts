/** Reason why a command is not followed. Stable: reasons are stored, shown and replied. */
export type CommandRejection =
  | 'githubCommentCommandBotRejected'
  | 'githubCommentCommandActorUnauthorized'
  | 'githubCommentCommandRepositoryNotConfigured'
  | 'githubCommentCommandWorkspaceNotConfigured';

/** Facts about the author and place of a command that need no query. */
export interface CommandFacts {
  readonly isBot: boolean;
  /** The source's `author_association`. */
  readonly association: string;
  readonly isRepositoryConfigured: boolean;
  readonly hasWorkspaceRoute: boolean;
}

/** Verdict that needs no query to the source. */
export type EarlyVerdict =
  /** No rule refuses the command yet. The source decides: an association names the members, not the users with write access. */
  { readonly kind: 'askSource' } | { readonly kind: 'rejected'; readonly errorCode: CommandRejection };

export type Eligibility = { readonly kind: 'eligible' } | Extract<EarlyVerdict, { readonly kind: 'rejected' }>;

const rules: readonly (readonly [CommandRejection, (facts: CommandFacts) => boolean])[] = [
  ['githubCommentCommandRepositoryNotConfigured', (facts) => !facts.isRepositoryConfigured],
  ['githubCommentCommandBotRejected', (facts) => facts.isBot],
  ['githubCommentCommandActorUnauthorized', (facts) => facts.association === 'MANNEQUIN'],
  ['githubCommentCommandWorkspaceNotConfigured', (facts) => !facts.hasWorkspaceRoute],
];

/** Refuses a command that the payload alone shows to be ineligible. The first rule that refuses decides. */
export function judgeCommand(facts: CommandFacts): EarlyVerdict {
  const refused = rules.find(([, refuses]) => refuses(facts));
  return refused ? { kind: 'rejected', errorCode: refused[0] } : { kind: 'askSource' };
}

/**
 * Decides whether a command is followed. Asks the source for the author's permission, for every association.
 *
 * @param isCollaborator whether the author may write to the repository; an error is passed on and the command is retried
 */
export async function decideCommand(facts: CommandFacts, isCollaborator: () => Promise<boolean>): Promise<Eligibility> {
  const judged = judgeCommand(facts);
  if (judged.kind === 'rejected') return judged;
  if (await isCollaborator()) return { kind: 'eligible' };
  return { kind: 'rejected', errorCode: 'githubCommentCommandActorUnauthorized' };
}
