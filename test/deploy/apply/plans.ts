import { existsSync, readFileSync } from 'node:fs';
import { marked } from '../../../src/deploy/files/index.ts';
import { layoutOf, stackFiles } from '../../../src/deploy/layout.ts';
import type { Plan, Step } from '../../../src/deploy/stack-plan.ts';

/** Plans of the shape of the real ones, made like those from the files on disk. */
export const secret = 'c2VjcmV0LW9mLXRoZS13ZWJob29rLW9mLWEtdGVzdA';
const baseEnv = "MODEL_KEY='sk-model-key-of-a-test-0123456789'\n";
const withSecret = `${baseEnv}WEBHOOK_SECRET='${secret}'\n`;

const file = (path: string, content: string, more: Partial<Step & { do: 'writeFile' }> = {}): Step => ({
  ...{ do: 'writeFile', path, content, mode: 0o644, isSecret: false, owner: 'ours' },
  ...more,
});
const env = (content: string): Step => file(stackFiles.env, content, { mode: 0o600, isSecret: true, owner: 'theirs' });
const hasSecret = (directory: string): boolean => {
  const { env } = layoutOf(directory);
  return existsSync(env) && readFileSync(env, 'utf8').includes('WEBHOOK_SECRET');
};
const plan = (directory: string, plan: Partial<Plan> & Pick<Plan, 'command' | 'phases'>): Plan => ({
  ...{ directory, onFailure: 'undo', reveals: [], notes: [] },
  ...plan,
});
const url = 'https://forge.example/octo/';

export const plans = {
  init: (directory: string): Plan =>
    plan(directory, {
      command: 'init',
      onFailure: 'keep',
      reveals: existsSync(layoutOf(directory).env) ? [] : ['AGENT_TOKEN'],
      phases: [
        {
          name: 'ports',
          title: 'Checking ports',
          steps: [{ do: 'checkPorts', ports: [5087, 19_100], host: '127.0.0.1', service: 'backend' }],
        },
        {
          name: 'files',
          title: 'Writing files',
          steps: [
            { do: 'makeDirectory', path: stackFiles.workspace, mode: 0o750 },
            { do: 'makeDirectory', path: `${stackFiles.workspace}/.oratorio`, mode: 0o750 },
            { do: 'makeDirectory', path: stackFiles.agent, mode: 0o750 },
            { do: 'makeDirectory', path: stackFiles.secrets, mode: 0o700 },
            file(stackFiles.compose, marked('services: {}\n')),
            env(baseEnv),
            file(stackFiles.config, '{"Sources":[]}\n', { mode: 0o640, owner: 'theirs' }),
            file(stackFiles.agentConfig, '{"Model":"m"}\n', { mode: 0o640, owner: 'theirs' }),
            file(stackFiles.privateKey, '-----BEGIN KEY-----\n', { mode: 0o600, isSecret: true, owner: 'theirs' }),
            file(stackFiles.images, '{"backend":"backend@v1"}\n', { mode: 0o600, owner: 'theirs' }),
          ],
        },
        {
          name: 'checkouts',
          title: 'Cloning',
          steps: [
            { do: 'clone', repository: 'octo/a', url: `${url}a.git`, path: 'workspace/octo__a' },
            { do: 'clone', repository: 'octo/b', url: `${url}b.git`, path: 'workspace/octo__b' },
            { do: 'giveTo', path: stackFiles.workspace, uid: 10_001, gid: 10_001 },
          ],
        },
        {
          name: 'images',
          title: 'Building the image',
          steps: [{ do: 'pullImages', services: ['agent', 'backend'] }],
        },
        { name: 'validate', title: 'Checking', steps: [{ do: 'checkComposition' }] },
        { name: 'start', title: 'Starting', steps: [{ do: 'start', services: ['agent', 'backend'], recreate: false }] },
        { name: 'health', title: 'Waiting', steps: [{ do: 'awaitHealthy', services: ['agent', 'backend'] }] },
      ],
    }),
  enable: (directory: string): Plan =>
    plan(directory, {
      command: 'webhook enable',
      reveals: hasSecret(directory) ? [] : ['WEBHOOK_SECRET'],
      phases: [
        {
          name: 'ports',
          title: 'Checking ports 80 and 443',
          steps: [{ do: 'checkPorts', ports: [80, 443], host: '*', service: 'webhook-gateway' }],
        },
        {
          name: 'files',
          title: 'Writing files',
          steps: [
            env(withSecret),
            file(stackFiles.overlay, marked('services: { webhook-gateway: {} }\n')),
            file(stackFiles.caddyfile, marked('review.example {}\n')),
          ],
        },
        { name: 'validate', title: 'Checking', steps: [{ do: 'checkComposition' }, { do: 'checkGateway' }] },
        { name: 'start', title: 'Starting', steps: [{ do: 'start', services: ['webhook-gateway'], recreate: false }] },
        { name: 'recreate', title: 'Recreating', steps: [{ do: 'start', services: ['backend'], recreate: true }] },
      ],
    }),
  disable: (directory: string): Plan =>
    plan(directory, {
      command: 'webhook disable',
      phases: [
        { name: 'stopping', title: 'Stopping', steps: stopping(directory) },
        {
          name: 'removing',
          title: 'Removing files',
          steps: [
            { do: 'removeFile', path: stackFiles.caddyfile },
            { do: 'removeFile', path: stackFiles.overlay },
            { do: 'checkComposition' },
          ],
        },
      ],
    }),
  upgrade: (directory: string): Plan =>
    plan(directory, {
      command: 'upgrade',
      phases: [
        { name: 'images', title: 'Fetching images', steps: [{ do: 'pullImages', services: ['agent', 'backend'] }] },
        { name: 'backup', title: 'Saving state', steps: [{ do: 'saveState' }] },
        {
          name: 'files',
          title: 'Pinning images',
          steps: [file(stackFiles.images, '{"backend":"backend@v2"}\n', { mode: 0o600, owner: 'theirs' })],
        },
        {
          name: 'recreate',
          title: 'Recreating',
          steps: [{ do: 'start', services: ['agent', 'backend'], recreate: true }],
        },
        { name: 'health', title: 'Waiting', steps: [{ do: 'awaitHealthy', services: ['agent', 'backend'] }] },
      ],
    }),
} as const;
export type PlanName = keyof typeof plans;

/** Without the overlay there is no gateway to stop. */
function stopping(directory: string): readonly Step[] {
  const isThere = existsSync(layoutOf(directory).overlay);
  return isThere ? [{ do: 'removeServices', services: ['webhook-gateway'] }] : [];
}
