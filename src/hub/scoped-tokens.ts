import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Authenticate, bearerToken, HttpError, keyIdOf, type SseSource } from '../http/index.ts';
import { AtomicFile, readJson } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type DelegationScope,
  type IssuedToken,
  ScopedToken,
  type TokenRequest,
  TokenScope,
} from '../protocol/index.ts';
import type { Credentials, OwnedFile } from './credentials.ts';
import { hubError } from './errors.ts';

/** Life of a token. */
const lifeMs = 7 * 86_400_000;
/** A host token with more than this left is reused, so a Hub that reconnects adds no token to the list. */
const reissuedMs = 2 * 86_400_000;
/** Longest wait before the next look for expired tokens. */
const maxWaitMs = 20_000;
/** Tokens on record. One more ends the oldest: its holder asks for another one. */
const maxTokens = 1_000;

const Facts = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    tokenId: v.string(),
    name: v.string(),
    scopes: v.array(TokenScope),
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
  /** Key ids of host tokens, cached because the route that looks them up needs no authentication. */
  readonly #keyIds = new Map<string, string>();
  /** Streams and WebSockets that end with their token. */
  readonly #revocations = new Set<(tokenId: string) => void>();
  #expiry: NodeJS.Timeout | undefined;

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
    this.#forgetExpired();
    const kept = isHosts(scopes) ? [] : own;
    const known = isHosts(scopes) ? this.#ofHost(name, now + reissuedMs) : undefined;
    if (known) return { ...known, token: this.#sealHost(known) };
    const entry: ScopedToken = {
      tokenId: `token_${randomBytes(8).toString('hex')}`,
      ...{ name, scopes, ownWorkspaces: kept.map(({ path }) => path) },
      ...{ issuedAt: new Date(now).toISOString(), expiresAt: new Date(now + lifeMs).toISOString() },
    };
    const { tokenId, expiresAt } = entry;
    const facts: Delegate = { tokenId, name, scopes, ownWorkspaceIds: kept.map(({ id }) => id), expiresAt };
    for (const oldest of this.#known.keys()) if (this.#known.size >= maxTokens) this.#forget(oldest);
    this.#known.set(tokenId, { ...entry, isRevoked: false });
    try {
      await this.save();
    } catch (error) {
      this.#known.delete(tokenId);
      throw error;
    }
    return { ...entry, token: this.#credentials.sealScoped(JSON.stringify(facts)) };
  }

  /**
   * Finds the token of another Hub by key id, for the proof that this Hub holds it. Includes revoked tokens, so that the holder
   * learns of the revocation by its next request.
   */
  ofHost(keyId: string): string | undefined {
    this.#forgetExpired();
    const found = [...this.#known.values()].find((entry) => isHosts(entry.scopes) && this.#keyIdOf(entry) === keyId);
    return found && this.#sealHost(found);
  }

  /** Whether this token was issued for another Hub; it may have expired or been revoked. */
  isHosts(token: string | undefined): boolean {
    return isHosts(this.#factsOf(token)?.scopes ?? []);
  }

  /** Whether this is a valid token of another Hub. */
  isHost(token: string): boolean {
    const facts = this.#factsOf(token);
    return facts !== undefined && this.#hostTokens().some(({ tokenId }) => tokenId === facts.tokenId);
  }

  /** Calls `end` when this token expires or is revoked. @returns function that stops watching */
  onRevoked(token: string | undefined, end: () => void): () => void {
    const facts = this.#factsOf(token);
    return facts === undefined ? () => {} : this.#watch(facts.tokenId, end);
  }

  #factsOf(token: string | undefined): Delegate | undefined {
    const parsed = v.safeParse(Facts, token === undefined ? null : this.#credentials.openScoped(token));
    return parsed.success ? parsed.output : undefined;
  }

  /** Ends at once for a token that has ended since it was checked: the check and the watch may lie seconds apart. */
  #watch(tokenId: string, end: () => void): () => void {
    if (this.#known.get(tokenId)?.isRevoked !== false) queueMicrotask(end);
    const revoked = (id: string) => {
      if (id === tokenId) end();
    };
    this.#revocations.add(revoked);
    this.#endExpiredSoon();
    return () => void this.#revocations.delete(revoked);
  }

  /** Looks for expired tokens while something is open. The clock may be set, so a wait is short. */
  #endExpiredSoon(): void {
    if (this.#expiry !== undefined || this.#revocations.size === 0) return;
    const next = Math.min(...[...this.#known.values()].map(({ expiresAt }) => Date.parse(expiresAt)));
    const waitMs = Math.min(Math.max(next - Date.now(), 0) + 1, maxWaitMs);
    this.#expiry = setTimeout(() => {
      this.#expiry = undefined;
      this.#forgetExpired();
      this.#endExpiredSoon();
    }, waitMs).unref();
  }

  #keyIdOf(entry: ScopedToken): string {
    const known = this.#keyIds.get(entry.tokenId) ?? keyIdOf(this.#sealHost(entry));
    this.#keyIds.set(entry.tokenId, known);
    return known;
  }

  #hostTokens(): ScopedToken[] {
    return this.list().filter(({ scopes }) => isHosts(scopes));
  }

  #ofHost(holder: string, validUntil: number): ScopedToken | undefined {
    return this.#hostTokens().find(({ name, expiresAt }) => name === holder && Date.parse(expiresAt) > validUntil);
  }

  /** Reissues a host token, character for character. */
  #sealHost({ tokenId, name, scopes, expiresAt }: ScopedToken): string {
    const facts: Delegate = { tokenId, name, scopes, ownWorkspaceIds: [], expiresAt };
    return this.#credentials.sealScoped(JSON.stringify(facts));
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
    for (const revoked of [...this.#revocations]) revoked(tokenId);
    return token;
  }

  /** Ends a stream of the token's holder when the token expires or is revoked. */
  untilRevoked(tokenId: string, source: SseSource): SseSource {
    return {
      replay: (lastEventId) => source.replay(lastEventId),
      subscribe: (listener, onEnd) => {
        const leave = source.subscribe(listener, onEnd);
        const unwatch = this.#watch(tokenId, onEnd);
        return () => {
          unwatch();
          leave();
        };
      },
    };
  }

  /** Accepts scoped tokens only: the Hub's own token opens the routes of a user. */
  readonly auth: Authenticate<Delegate> = (request) => {
    const facts = this.#factsOf(bearerToken(request.header('authorization')));
    const entry = facts && this.#known.get(facts.tokenId);
    if (facts && entry && Date.parse(facts.expiresAt) > Date.now()) {
      if (!entry.isRevoked) return facts;
      throw hubError('tokenRevoked', `The token ${entry.name} was revoked. Restart its holder to issue another one.`);
    }
    throw new HttpError(401, 'unauthorized', 'This route needs a scoped token that has not expired.', {}, [
      ['www-authenticate', 'Bearer error="invalid_token"'],
    ]);
  };

  #forget(tokenId: string): void {
    this.#known.delete(tokenId);
    this.#keyIds.delete(tokenId);
    for (const ended of [...this.#revocations]) ended(tokenId);
  }

  #forgetExpired(): void {
    const now = Date.now();
    for (const [tokenId, { expiresAt }] of this.#known) if (Date.parse(expiresAt) <= now) this.#forget(tokenId);
  }

  /** Resolves when the record is on disk. */
  save(): Promise<void> {
    return this.#file.write(`${JSON.stringify({ version: 1, tokens: [...this.#known.values()] })}\n`);
  }
}

/** Whether a token is for the Hub of another machine, and for nothing else. */
const isHosts = (scopes: Delegate['scopes']): boolean => scopes.length === 1 && scopes[0] === 'host';

/** @throws HttpError 403 `scopeMissing` */
export function requireScope({ name, scopes }: Delegate, scope: DelegationScope): void {
  if (!scopes.includes(scope)) throw hubError('scopeMissing', `The token ${name} has no right to ${scope}.`, { scope });
}
