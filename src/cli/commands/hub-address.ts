import { connectHub } from '../../client/index.ts';
import type { RemoteAddress } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';

/** Name of the token's holder in the list of tokens: address of the requesting machine, from the ssh server. */
function holderOf(connection: string | undefined): string {
  const address = connection?.split(' ')[0]?.replace(/[^A-Za-z0-9.]/g, '.') ?? '';
  return `host ${address}`.trim().slice(0, 40);
}

/** `oratorio hub address`: prints a token only with `--json`, for another Hub. */
export async function run({ home, env, options, output, signal }: CommandContext): Promise<number> {
  const { hub, lock } = await connectHub({ home, signal, autoStart: options['start'] === true });
  if (!output.json) {
    output.line(lock.apiBaseUrl);
    return exitCodes.ok.code;
  }
  const name = holderOf(env['SSH_CONNECTION']);
  const { token, tokenId } = await hub.issueToken({ name, scopes: ['host'] }, { signal });
  const now = new Date().toISOString();
  // The reader takes the last line that begins with a brace: a login shell may print before it.
  output.jsonLine({ apiBaseUrl: lock.apiBaseUrl, version: lock.version, tokenId, token, now } satisfies RemoteAddress);
  return exitCodes.ok.code;
}
