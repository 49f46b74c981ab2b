import type { ScopedTokenAnswer } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHub } from '../hub.ts';
import { inLine } from '../render.ts';

/** `oratorio tokens` */
export async function list(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  return withHub(context, async ({ hub }) => {
    const tokens = await hub.scopedTokens({ signal });
    if (output.json) output.document(tokens);
    else if (tokens.length === 0) output.line('No program leads workspaces.');
    else for (const token of tokens) output.line(lineOf(token, output.colors));
    return exitCodes.ok.code;
  });
}

/** `token_3f2a…  lead  list,read,prompt  until 2026-01-08T12:00:00.000Z` */
function lineOf(token: ScopedTokenAnswer, { bold, dim }: CommandContext['output']['colors']): string {
  const { tokenId, name, scopes, expiresAt, ownWorkspaces } = token;
  const not = ownWorkspaces.length === 0 ? '' : ` · not for ${ownWorkspaces.map(inLine).join(', ')}`;
  return `${bold(inLine(tokenId))}  ${inLine(name)}  ${inLine(scopes.join(','))}  ${dim(`until ${inLine(expiresAt)}${not}`)}`;
}

/** `oratorio tokens revoke` */
export async function revoke(context: CommandContext): Promise<number> {
  const { argument, output, signal } = context;
  if (argument === undefined)
    throw usageError('tokens revoke needs the id of a token. List them: oratorio tokens', 'tokens revoke');
  return withHub(context, async ({ hub }) => {
    const { tokenId } = one(await hub.scopedTokens({ signal }), argument);
    const revoked = await hub.revokeToken(tokenId, { signal });
    if (output.json) output.document(revoked);
    else output.line(`Revoked: ${inLine(revoked.name)} (${inLine(revoked.scopes.join(','))})`);
    return exitCodes.ok.code;
  });
}

/** @throws CliError unless the id, or its beginning, names exactly one token */
function one(tokens: readonly ScopedTokenAnswer[], id: string): ScopedTokenAnswer {
  const exact = tokens.filter(({ tokenId }) => tokenId === id);
  const found = exact.length > 0 ? exact : tokens.filter(({ tokenId }) => tokenId.startsWith(id));
  const [only] = found;
  if (only && found.length === 1) return only;
  const what = found.length > 1 ? `${found.length} tokens begin with ${id}.` : `There is no token ${id}.`;
  throw new CliError('failure', what, 'See which there are: oratorio tokens');
}
