/** Requests of a program with a scoped token at the Hub: `oratorio mcp`, through which one agent leads others. */
import * as v from 'valibot';

const text = (description: string) => v.pipe(v.string(), v.nonEmpty(), v.maxLength(4_096), v.description(description));

/** Rights of a scoped token, in the order of their risk. */
export const delegationScopes = ['list', 'read', 'start', 'prompt', 'approve'] as const;
export type DelegationScope = (typeof delegationScopes)[number];

/** Rights of a token. `host`: list, events, inbox, threads, ensure and stop, for the Hub of another machine of the user. */
const tokenScopes = [...delegationScopes, 'host'] as const;
export const TokenScope = v.picklist(tokenScopes);

/** Body of `POST /v1/tokens`. */
export const TokenRequest = v.object({
  name: v.pipe(
    v.string(),
    v.regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}$/),
    v.description('Name of the holder, for the record of decisions: 1 to 40 letters, digits, spaces, dots, _ or -.'),
  ),
  scopes: v.pipe(v.array(TokenScope), v.minLength(1), v.description('Rights of the token.')),
  cwd: v.optional(text('Directory of the holder: it decides nothing in a workspace that contains it.')),
  marker: v.optional(text('Mark of the agent server that started the holder: it decides nothing of its workspace.')),
});
export type TokenRequest = v.InferOutput<typeof TokenRequest>;

/** A scoped token that opens something, without the token itself. */
export const ScopedToken = v.object({
  tokenId: text('Id of the token; it opens nothing.'),
  name: text('Name of the holder.'),
  scopes: v.array(TokenScope),
  issuedAt: text('When it was issued, as ISO 8601.'),
  expiresAt: text('When it ends, as ISO 8601.'),
  ownWorkspaces: v.pipe(v.array(v.string()), v.description('Workspaces whose requests the holder can never decide.')),
});
export type ScopedToken = v.InferOutput<typeof ScopedToken>;

export const IssuedToken = v.object({
  ...ScopedToken.entries,
  token: text('The token; a Hub of the same home accepts it until it expires or is revoked.'),
});
export type IssuedToken = v.InferOutput<typeof IssuedToken>;

/** Body of `POST /v1/tokens/revoke`. */
export const TokenRevocation = v.object({ tokenId: text('Id of the token.') });
export type TokenRevocation = v.InferOutput<typeof TokenRevocation>;

const workspaceId = text('Id of the workspace, as `list` names it.');

const messageId = text('Id of a prompt, from the answer to it. It is a secret: it gives access to the turn.');

/** Body of `POST /v1/delegated`: one thing to do. Each needs the scope of its name; `requests` needs `approve`, `cancel` needs `prompt`. */
export const DelegatedRequest = v.variant('do', [
  v.object({ do: v.literal('list') }),
  v.object({ do: v.literal('start'), workspacePath: text('Path of a workspace.') }),
  v.object({
    do: v.literal('prompt'),
    workspaceId,
    threadId: v.optional(text('A conversation; absent: a new one.')),
    text: v.pipe(v.string(), v.nonEmpty(), v.maxLength(100_000), v.description('Task for the agent.')),
  }),
  v.object({
    do: v.literal('read'),
    workspaceId,
    threadId: v.optional(text('A conversation; absent: the list of conversations.')),
  }),
  v.object({ do: v.literal('result'), workspaceId, threadId: text('A conversation.'), messageId }),
  v.object({ do: v.literal('cancel'), workspaceId, threadId: text('A conversation.'), messageId }),
  v.object({ do: v.literal('requests') }),
  v.object({
    do: v.literal('approve'),
    workspaceId,
    requestId: text('Id of the request.'),
    decision: v.pipe(v.picklist(['accept', 'decline']), v.description('Allows this once, or declines.')),
  }),
]);
export type DelegatedRequest = v.InferOutput<typeof DelegatedRequest>;
