/** A stack on the disk for tests of commands on one: its files are the product's own, its answers made up. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { changeEnv, composeFile, marked, newBackendConfig, overlayFile } from '../../../src/deploy/files/index.ts';
import { layoutOf, type StackLayout } from '../../../src/deploy/layout.ts';

export const stackSecrets = {
  ORATORIO_MODEL_API_KEY: 'sk-model-key-0123456789abcdef',
  ORATORIO_AGENT_TOKEN: 'agent-token-0123456789abcdefghi',
  ORATORIO_DASHBOARD_PASSWORD: 'dashboard-password-0123456789',
  ORATORIO_SERVICE_TOKEN: 'service-token-0123456789abcdef',
  ORATORIO_GITHUB_WEBHOOK_SECRET: 'webhook$secret/0123456789+abcd',
} as const;

export interface TestStackOptions {
  readonly hasIngress?: boolean;
  /** Besides the secrets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Writes a stack into a directory of its own, removed with the test. */
export function testStack(t: Test, { hasIngress = false, env = {} }: TestStackOptions = {}): StackLayout {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-stack-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const stack = layoutOf(directory);
  const values = { COMPOSE_PROJECT_NAME: 'test-stack', ORATORIO_IMAGE: 'oratorio', ...stackSecrets, ...env };
  for (const path of [stack.workspace, stack.secrets, stack.state]) mkdirSync(path, { mode: 0o700 });
  writeFileSync(stack.compose, composeFile({ isSelinux: false }));
  writeFileSync(stack.env, changeEnv('', values), { mode: 0o600 });
  writeFileSync(stack.config, newBackendConfig({ appId: '1', writesEnabled: true, repositories: [] }));
  if (!hasIngress) return stack;
  writeFileSync(stack.overlay, overlayFile({ isSelinux: false }));
  writeFileSync(stack.caddyfile, marked('hooks.example.com {\n\trespond 404\n}\n'));
  return stack;
}
