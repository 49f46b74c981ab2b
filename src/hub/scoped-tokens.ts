import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Authenticate, bearerToken, HttpError } from '../http/index.ts';
import { AtomicFile, readJson } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type DelegationScope,
  delegationScopes,
  type IssuedToken,
  ScopedToken,
  type TokenRequest,
} from '../protocol/index.ts';
import type { Credentials, OwnedFile } from './credentials.ts';
import { hubError } from './errors.ts';

/** Life of a token. */
const lifeMs = 7 * 86_400_000;
/** Tokens on record. One more ends the oldest: its holder asks for another one. */
const maxTokens = 1_000;

const Facts = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    tokenId: v.string(),
    name: v.string(),
    scopes: v.array(v.picklist(delegationScopes)),
    ownWorkspaceIds: v.array(v.string()),
    expiresAt: v.string(),
  }),
);

/** Holder of a scoped token. */
export type Delegate = v.InferOutput<typeof Facts>;

/** A token stays on record until it expires, so that its holder learns that it was revoked. */
const Entry = v.object({ ...ScopedToken.entries, isRevoked: v.boolean() });
type Entry = v.InferOutput<typeof Entry>;

const Stored = v.object({ version: v.literal(1), tokens: v.pipe(v.array(Entry), v.maxLength(maxTokens)) });

/**
 * The scoped tokens, in `tokens.json` (0600, atomic), without the tokens themselves. A token that is not on record opens nothing.
 */
export class ScopedTokens implements OwnedFile {
  readonly #credentials: Credentials;
  readonly #file: AtomicFile;
  readonly #known = new Map<string, Entry>();

  constructor(statePath: string, credentials: Credentials, logger: Logger) {
    this.#credentials = credentials;
    this.#file = new AtomicFile(join(statePath, 'tokens.json'));
    const read = readJson(this.#file.path, Stored);
    if (read.kind === 'ok') for (const each of read.value.tokens) this.#known.set(each.tokenId, each);
    if (read.kind === 'invalid')
      logger.warn('the record of scoped tokens cannot be used and starts empty; earlier tokens open nothing', {
        problem: read.problem,
      });
  }

  get file(): string {
    return this.#file.path;
  }

  /**
   * Resolves when the token is on record.
   *
   * @param own workspaces whose requests the holder can never decide
   */
  async issue(
    { name, scopes: asked }: TokenRequest,
    own: readonly { readonly id: string; readonly path: string }[],
  ): Promise<IssuedToken> {
    const now = Date.now();
    const scopes = [...new Set(asked)];
    const entry: ScopedToken = {
      tokenId: `token_${randomBytes(8).toString('hex')}`,
      ...{ name, scopes, ownWorkspaces: own.map(({ path }) => path) },
      ...{ issuedAt: new Date(now).toISOString(), expiresAt: new Date(now + lifeMs).toISOString() },
    };
    const { tokenId, expiresAt } = entry;
    const facts: Delegate = { tokenId, name, scopes, ownWorkspaceIds: own.map(({ id }) => id), expiresAt };
    this.#forgetExpired();
    for (const oldest of this.#known.keys()) if (this.#known.size >= maxTokens) this.#known.delete(oldest);
    this.#known.set(tokenId, { ...entry, isRevoked: false });
    try {
      await this.save();
    } catch (error) {
      this.#known.delete(tokenId);
      throw error;
    }
    return { ...entry, token: this.#credentials.sealScoped(JSON.stringify(facts)) };
  }

  /** Tokens that open something, the latest first. */
  list(): ScopedToken[] {
    this.#forgetExpired();
    const valid = [...this.#known.values()].filter(({ isRevoked }) => !isRevoked);
    return valid.map(({ isRevoked, ...token }) => token).toReversed();
  }

  /** Ends a token at once. Resolves when that is on disk. @throws HttpError 404 `notFound` */
  async revoke(tokenId: string): Promise<ScopedToken> {
    this.#forgetExpired();
    const found = this.#known.get(tokenId);
    if (!found || found.isRevoked) throw hubError('notFound', 'There is no such token. See: oratorio tokens');
    const { isRevoked, ...token } = found;
    this.#known.set(tokenId, { ...token, isRevoked: true });
    await this.save();
    return token;
  }

  /** Accepts scoped tokens only: the Hub's own token opens the routes of a user. */
  readonly auth: Authenticate<Delegate> = (request) => {
    const token = bearerToken(request.header('authorization'));
    const facts = token === undefined ? null : this.#credentials.openScoped(token);
    const parsed = v.safeParse(Facts, facts);
    const entry = parsed.success ? this.#known.get(parsed.output.tokenId) : undefined;
    if (parsed.success && entry && Date.parse(parsed.output.expiresAt) > Date.now()) {
      if (!entry.isRevoked) return parsed.output;
      throw hubError('tokenRevoked', `The token ${entry.name} was revoked. Restart its holder to issue another one.`);
    }
    throw new HttpError(401, 'unauthorized', 'This route needs a scoped token that has not expired.', {}, [
      ['www-authenticate', 'Bearer error="invalid_token"'],
    ]);
  };

  #forgetExpired(): void {
    const now = Date.now();
    for (const [tokenId, { expiresAt }] of this.#known) if (Date.parse(expiresAt) <= now) this.#known.delete(tokenId);
  }

  /** Resolves when the record is on disk. */
  save(): Promise<void> {
    return this.#file.write(`${JSON.stringify({ version: 1, tokens: [...this.#known.values()] })}\n`);
  }
}

/** @throws HttpError 403 `scopeMissing` */
export function requireScope({ name, scopes }: Delegate, scope: DelegationScope): void {
  if (!scopes.includes(scope)) throw hubError('scopeMissing', `The token ${name} has no right to ${scope}.`, { scope });
}
