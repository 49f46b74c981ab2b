import * as v from 'valibot';
import { connectHub, HubRequestError } from '../../client/index.ts';
import { type DelegatedRequest, type DelegationScope, delegationScopes } from '../../protocol/index.ts';
import { markerVariable } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { serveMcp } from '../mcp-server/server.ts';
import { LedTasks } from '../mcp-server/tasks.ts';
import { toolsFor } from '../mcp-server/tools.ts';

/** Time-out for the revocation of the token at the end. */
const revokeMs = 1_000;

const defaultScopes: readonly DelegationScope[] = ['list', 'read', 'start', 'prompt'];

/** `oratorio mcp`: offers the workspaces as tools on standard input and output, with the rights of a scoped token. */
export async function run({ home, env, options, absolute, signal }: CommandContext): Promise<number> {
  const scopes = scopesOf(options['allow']);
  const name = String(options['name'] ?? 'mcp');
  const cwd = absolute('.');
  const ending = new AbortController();
  for (const each of ['SIGINT', 'SIGTERM'] as const) process.once(each, () => ending.abort());
  const autoStart = options['start'] !== false;
  const marker = env[markerVariable];

  /** Connection and token, new for each Hub: a restarted Hub knows the workspaces of this directory. */
  let current: Promise<{ readonly hub: Connected; readonly token: string; readonly tokenId: string }> | undefined;
  const connect = async () => {
    const { hub } = await connectHub({ home, signal: AbortSignal.any([signal, ending.signal]), autoStart });
    const { token, tokenId } = await hub.issueToken({ name, scopes: [...scopes], cwd, ...(marker && { marker }) });
    return { hub, token, tokenId };
  };
  type Connected = Awaited<ReturnType<typeof connectHub>>['hub'];

  async function delegated(request: DelegatedRequest, aborted: AbortSignal): Promise<unknown> {
    current ??= connect();
    const { hub, token } = await current.catch((error: unknown) => {
      current = undefined;
      throw error;
    });
    try {
      return await hub.delegate(request, token, { signal: aborted });
    } catch (error) {
      // The Hub has gone, or the token has expired: the next call reconnects. A revoked token stays revoked (403).
      if (!(error instanceof HubRequestError) || error.status === 401) current = undefined;
      throw error;
    }
  }

  const streams = { input: process.stdin, output: process.stdout, signal: ending.signal };
  const tasks = scopes.includes('read') && scopes.includes('prompt') ? new LedTasks(delegated) : undefined;
  await serveMcp({ tools: toolsFor(scopes, delegated, tasks), ...(tasks && { tasks }) }, streams);
  const last = await current?.catch(() => undefined);
  // Nothing is lost without: it expires.
  await last?.hub.revokeToken(last.tokenId, { signal: AbortSignal.timeout(revokeMs) }).catch(() => {});
  return exitCodes.ok.code;
}

/** @throws CliError for an unknown word */
function scopesOf(option: string | boolean | undefined): readonly DelegationScope[] {
  if (typeof option !== 'string') return defaultScopes;
  const parsed = v.safeParse(
    v.pipe(v.array(v.picklist(delegationScopes)), v.minLength(1)),
    option.split(',').map((word) => word.trim()),
  );
  if (!parsed.success) throw usageError(`--allow takes a list of: ${delegationScopes.join(', ')}`, 'mcp');
  return parsed.output;
}
