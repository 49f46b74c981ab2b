import * as v from 'valibot';
import { type Authenticate, bearerToken, HttpError } from '../http/index.ts';
import { type DelegationScope, delegationScopes, type IssuedToken, type TokenRequest } from '../protocol/index.ts';
import type { Credentials } from './credentials.ts';
import { hubError } from './errors.ts';

/** Life of a token. */
const lifeMs = 7 * 86_400_000;

const Facts = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    name: v.string(),
    scopes: v.array(v.picklist(delegationScopes)),
    ownWorkspaceIds: v.array(v.string()),
    expiresAt: v.string(),
  }),
);

/** Holder of a scoped token. */
export type Delegate = v.InferOutput<typeof Facts>;

/** @param own workspaces whose requests the holder can never decide */
export function issueToken(
  credentials: Credentials,
  { name, scopes }: TokenRequest,
  own: readonly { readonly id: string; readonly path: string }[],
): IssuedToken {
  const expiresAt = new Date(Date.now() + lifeMs).toISOString();
  const facts: Delegate = { name, scopes: [...new Set(scopes)], ownWorkspaceIds: own.map(({ id }) => id), expiresAt };
  const token = credentials.sealScoped(JSON.stringify(facts));
  return { token, scopes: facts.scopes, expiresAt, ownWorkspaces: own.map(({ path }) => path) };
}

/** Accepts scoped tokens only: the Hub's own token opens the routes of a user. */
export function delegateAuth(credentials: Credentials): Authenticate<Delegate> {
  return (request) => {
    const token = bearerToken(request.header('authorization'));
    const facts = token === undefined ? null : credentials.openScoped(token);
    const parsed = v.safeParse(Facts, facts);
    if (parsed.success && Date.parse(parsed.output.expiresAt) > Date.now()) return parsed.output;
    throw new HttpError(401, 'unauthorized', 'This route needs a scoped token that has not expired.', {}, [
      ['www-authenticate', 'Bearer error="invalid_token"'],
    ]);
  };
}

/** @throws HttpError 403 `scopeMissing` */
export function requireScope({ name, scopes }: Delegate, scope: DelegationScope): void {
  if (!scopes.includes(scope)) throw hubError('scopeMissing', `The token ${name} has no right to ${scope}.`, { scope });
}
