/** Why a command is not followed. Stable: they are stored, shown and replied. */
export type CommandRejection =
  | 'githubCommentCommandBotRejected'
  | 'githubCommentCommandActorUnauthorized'
  | 'githubCommentCommandRepositoryNotConfigured'
  | 'githubCommentCommandWorkspaceNotConfigured';

/** What is known of a command's author and place without asking anybody. */
export interface CommandFacts {
  readonly isBot: boolean;
  /** The forge's `author_association`. */
  readonly association: string;
  readonly isRepositoryConfigured: boolean;
  readonly hasWorkspaceRoute: boolean;
}

export type Eligibility =
  | { readonly kind: 'eligible' }
  /** Somebody whose membership the payload need not show, because it is private: the forge knows. */
  | { readonly kind: 'askForge' }
  | { readonly kind: 'rejected'; readonly errorCode: CommandRejection };

const trusted: ReadonlySet<string> = new Set(['OWNER', 'MEMBER', 'COLLABORATOR']);

const rules: readonly (readonly [CommandRejection, (facts: CommandFacts) => boolean])[] = [
  ['githubCommentCommandRepositoryNotConfigured', (facts) => !facts.isRepositoryConfigured],
  ['githubCommentCommandBotRejected', (facts) => facts.isBot],
  ['githubCommentCommandActorUnauthorized', (facts) => facts.association === 'MANNEQUIN'],
  ['githubCommentCommandWorkspaceNotConfigured', (facts) => !facts.hasWorkspaceRoute],
];

/** What can be said at once. The first rule that refuses decides. */
export function judgeCommand(facts: CommandFacts): Eligibility {
  const refused = rules.find(([, refuses]) => refuses(facts));
  if (refused) return { kind: 'rejected', errorCode: refused[0] };
  return trusted.has(facts.association) ? { kind: 'eligible' } : { kind: 'askForge' };
}

/**
 * The last word: asks the forge where the payload did not say enough.
 *
 * @param isCollaborator whether somebody may write to the repository; what it throws is thrown on, the command is tried again
 */
export async function decideCommand(
  facts: CommandFacts,
  isCollaborator: () => Promise<boolean>,
): Promise<Exclude<Eligibility, { readonly kind: 'askForge' }>> {
  const judged = judgeCommand(facts);
  if (judged.kind !== 'askForge') return judged;
  if (await isCollaborator()) return { kind: 'eligible' };
  return { kind: 'rejected', errorCode: 'githubCommentCommandActorUnauthorized' };
}
