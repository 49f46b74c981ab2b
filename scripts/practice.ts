/**
 * `npm run practice -- DIR` serves a stand-in for GitHub and for a model on this machine, so that a reader of docs/tutorial.md can
 * run a review without an account or a key. It writes settings, key and a checkout into DIR, and runs until Ctrl-C.
 * `npm run practice -- DIR --open-pull` opens the next pull request there. Both stand-ins are those of the end-to-end tests.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Reviewer } from '../test/e2e/review-harness/reviewer.ts';
import { faults, firstChange, onMain } from '../test/e2e/review-harness/shop.ts';
import { commitFiles } from '../test/review/forge/git.ts';
import { Forge, type ForgeRepository } from '../test/review/forge/index.ts';

const owner = 'acme';
const name = 'shop';

/** Files of the directory, by purpose. */
const files = (directory: string) => ({
  /** Address that opens a pull request. Present while the stand-ins run. */
  control: join(directory, 'control.url'),
  privateKey: join(directory, 'app.pem'),
  backendSettings: join(directory, 'oratorio.config.json'),
  agentSettings: join(directory, 'agent.config.json'),
  checkout: join(directory, name),
});

/** Settings of the review backend: publishes each automatic review of the repository. */
function backendSettings(directory: string, forge: Forge, port: number, secret: string) {
  return {
    Oratorio: {
      Server: { Port: port },
      GitHub: {
        Endpoint: forge.apiUrl,
        GitEndpoint: forge.url,
        AppId: forge.app.id,
        PrivateKeyPath: files(directory).privateKey,
        WebhookSecret: secret,
        Repositories: [`${owner}/${name}`],
        WritesEnabled: true,
      },
      AgentServer: {
        RepositoryWorkspaceRoutes: [{ Project: `${owner}/${name}`, WorkspacePath: files(directory).checkout }],
      },
      Automation: { AutoReviewRepositories: [`${owner}/${name}`], AutoReviewPublishEnabled: true },
    },
  };
}

const writeJson = (file: string, value: unknown) =>
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });

/** Clones the repository once; a checkout from an earlier run is used again. */
function makeCheckout({ gitDirectory = '' }: ForgeRepository, checkout: string): void {
  if (!existsSync(checkout)) execFileSync('git', ['clone', '--quiet', gitDirectory, checkout]);
}

/** Prints each comment that the backend publishes, once. */
function printPublished(forge: Forge, repo: ForgeRepository): void {
  let printed = 0;
  forge.onRequest(() => {
    for (; printed < repo.reviewComments.length; printed += 1) {
      const comment = repo.reviewComments[printed];
      const title = /^\S.*$/m.exec(comment?.body.replace(/<!--[\s\S]*?-->/g, '') ?? '')?.[0] ?? '';
      console.log(`Comment on ${owner}/${name}#${comment?.number}, ${comment?.path}:${comment?.line}: ${title}`);
    }
  });
}

/** Opens pull requests on request. @returns its address */
async function serveControl(forge: Forge, repo: ForgeRepository): Promise<string> {
  let number = 0;
  const server = createServer(async (_, response) => {
    number += 1;
    const headRef = `change-${number}`;
    await commitFiles(repo.gitDirectory ?? '', headRef, firstChange, { from: 'main' });
    await forge.openPull(repo, { number, headRef, title: 'Discounts' });
    response.end(`Opened ${owner}/${name}#${number}: Discounts\n`);
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves until SIGINT or SIGTERM. @param port - of the review backend, on loopback */
async function serve(directory: string, port: number): Promise<void> {
  const teardowns: (() => unknown)[] = [];
  const secret = 'secret of the practice webhook';
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { control, privateKey, backendSettings: settings, agentSettings, checkout } = files(directory);
  const forge = await new Forge().start();
  const repo = await forge.addGitRepository(owner, name, onMain);
  forge.app.hook = { url: `http://127.0.0.1:${port}/api/v1/sources/github/webhook`, secret, contentType: 'json' };
  const model = await new Reviewer(Object.values(faults)).start({ teardown: (work) => teardowns.push(work) });
  makeCheckout(repo, checkout);
  writeFileSync(privateKey, forge.app.privateKey, { mode: 0o600 });
  writeJson(settings, backendSettings(directory, forge, port, secret));
  writeJson(agentSettings, { EndPoint: model.url, ApiKey: 'practice-key', Model: 'practice' });
  printPublished(forge, repo);
  writeFileSync(control, await serveControl(forge, repo));
  console.log(`Practice GitHub on ${forge.url}, with the repository ${owner}/${name}`);
  console.log(`Practice model on ${model.url}`);
  await interrupted();
  rmSync(control);
  await forge.stop();
  for (const work of teardowns) await work();
}

/** Resolves at the first SIGINT or SIGTERM. A terminal and npm both send one: a later one must not end the removal of files. */
const interrupted = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve());
  });

/** @throws Error when no stand-in runs for this directory */
async function openPull(directory: string): Promise<void> {
  const { control } = files(directory);
  if (!existsSync(control))
    throw new Error(`${control} does not exist: start the stand-ins first, with npm run practice -- ${directory}`);
  const response = await fetch(readFileSync(control, 'utf8'), { method: 'POST' });
  process.stdout.write(await response.text());
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'open-pull': { type: 'boolean' }, 'backend-port': { type: 'string', default: '5087' } },
});
const directory = resolve(positionals[0] ?? 'practice');
if (values['open-pull'] === true) await openPull(directory);
else await serve(directory, Number(values['backend-port']));
process.exit();
