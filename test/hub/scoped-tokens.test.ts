import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Credentials } from '../../src/hub/credentials.ts';
import { ScopedTokens } from '../../src/hub/scoped-tokens.ts';
import { createLogger } from '../../src/log/index.ts';

/** Seals nothing, so that a test can write tokens. */
const credentials = {
  sealScoped: (text: string) => text,
  openScoped: (text: string) => text,
} as unknown as Credentials;

t.test('regression: streams and sockets of a token end when it expires', async (t) => {
  const statePath = t.testdir();
  const expiresAt = new Date(Date.now() + 1_000).toISOString();
  const facts = { tokenId: 'token_1', name: 'host box', scopes: ['host'], expiresAt };
  const entry = { ...facts, ownWorkspaces: [], issuedAt: new Date().toISOString(), isRevoked: false };
  writeFileSync(join(statePath, 'tokens.json'), JSON.stringify({ version: 1, tokens: [entry] }));
  const tokens = new ScopedTokens(statePath, credentials, createLogger({ name: 'test', level: 'silent' }));
  const token = JSON.stringify({ ...facts, ownWorkspaceIds: [] });
  t.equal(tokens.isHost(token), true);
  // The timer of the tokens alone keeps no process alive.
  const alive = setInterval(() => {}, 1_000);
  await new Promise<void>((resolve) => void tokens.onRevoked(token, resolve));
  clearInterval(alive);
  t.ok(Date.now() >= Date.parse(expiresAt));
  t.equal(tokens.isHost(token), false);
  await new Promise<void>((resolve) => void tokens.onRevoked(token, resolve));
  t.pass('a socket that opens after that ends at once');
});
