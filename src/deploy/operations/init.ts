import { readdirSync } from 'node:fs';
import { openChange } from '../apply/index.ts';
import { defaults } from '../defaults.ts';
import { firstFreePort } from '../engine/index.ts';
import { DeployError } from '../errors.ts';
import { caddyfile, newSecret, type VariableName } from '../files/index.ts';
import { cloneUrlFor, findGit } from '../git/index.ts';
import { appKey, proveApp } from '../github/index.ts';
import type { PublicHost } from '../host/index.ts';
import { planInit, webhookSecret } from '../plan/index.ts';
import { isSelinuxEnforcing, layoutOf, requireLinux, type StackLayout, stackUser } from '../stack/index.ts';
import type { Plan } from '../stack-plan.ts';
import type { InitAnswers } from './answers.ts';
import type { Change, Preparing } from './change-stack.ts';
import { checkHost } from './check-host.ts';
import { defaultImages, fetchImage, imageRecord, otherStackImage } from './images.ts';
import { type Leftovers, readLeftovers } from './leftovers.ts';
import { asReported, placed } from './place-repository.ts';
import { watched } from './session.ts';
import { hostOf } from './source-host.ts';
import { duties, secretOf } from './webhook.ts';

/** A new stack, or the rest of one that was interrupted (specification §4.4). */
export const initChange = (answers: InitAnswers): Change => ({
  directory: answers.directory,
  command: 'init',
  check() {
    checkPlace(layoutOf(answers.directory));
    given(answers);
  },
  prepare: (preparing) => prepare(answers, preparing),
});

async function prepare(answers: InitAnswers, preparing: Preparing): Promise<Plan> {
  const { directory, github, model, starts } = answers;
  const { session } = preparing;
  if (!preparing.isDry) requireLinux();
  const { gateway, privateKey } = given(answers);
  const git = await findGit(session);
  const missing = starts || answers.build ? await engineProblem(preparing) : null;
  const notes = [...(missing === null ? [] : [missing]), ...(await proof(answers, privateKey, preparing))];
  const left = readLeftovers(directory);
  const images = await imagesOf(answers, preparing);
  const app = privateKey === null ? null : { appId: github.appId, privateKey };
  return planInit({
    directory,
    repositories: await Promise.all(
      answers.repositories.map(async ({ repository: given, cloneUrl }) => {
        const asks = cloneUrl === null && !answers.isOffline;
        const repository = placed(
          asks ? await asReported(given, { endpoint: github.endpoint, app }, session) : given,
          layoutOf(directory),
          null,
        );
        return {
          repository,
          url: await cloneUrlFor(git, repository.fullName, cloneUrl ?? undefined, hostOf(github.endpoint, session)),
          autoReview: answers.autoReview,
        };
      }),
    ),
    github: {
      appId: github.appId,
      writesEnabled: answers.writes,
      installations: github.installations,
      privateKeyPath: github.privateKeyPath,
      ...(github.endpoint !== null && { endpoint: github.endpoint }),
    },
    privateKey,
    model,
    secrets: secretsOf(left),
    ports: await portsOf(answers, left),
    images: images.pinned,
    record: imageRecord(images),
    user: stackUser(),
    isSelinux: isSelinuxEnforcing(),
    starts,
    gateway: gateway && !starts ? gatewayOf(gateway, answers.webhook, left) : null,
    notes: [
      ...notes,
      ...(gateway && starts ? [`Then a gateway for ${gateway.display}, as of: oratorio server webhook enable`] : []),
      ...(gateway && !starts ? duties(gateway) : []),
    ],
  });
}

/** Whether the stack can be started here. A dry run only notes that it cannot. @throws DeployError engineMissing and others */
async function engineProblem({ engine, isDry }: Preparing): Promise<string | null> {
  try {
    await engine();
    return null;
  } catch (error) {
    if (!isDry || !(error instanceof DeployError) || error.code === 'cancelled') throw error;
    return `Not possible yet: ${error.message}${error.hint === null ? '' : ` ${error.hint}`}`;
  }
}

/** Answers as they can be used. @throws DeployError hostRefused, secretRefused */
const given = ({ webhook, github: { privateKey } }: InitAnswers) => ({
  gateway: webhook && checkHost(webhook.publicHost, webhook.certificates),
  privateKey: privateKey === null ? null : appKey(privateKey, "The App's private key"),
});

/** The gateway of a stack that is written and not started. */
const gatewayOf = (host: PublicHost, webhook: InitAnswers['webhook'], left: Leftovers | null) => ({
  caddyfile: caddyfile({
    host,
    acmeEmail: webhook?.acmeEmail ?? null,
    certificates: webhook?.certificates ?? 'production',
  }),
  secret: secretOf(left?.env.get(webhookSecret), webhook?.secret ?? null),
});

/** Checks that the directory holds no foreign files. @throws DeployError foreignDirectory */
function checkPlace(layout: StackLayout): void {
  if (openChange(layout)?.command === 'init') return;
  const names = namesIn(layout.directory).filter((name) => name !== '.server');
  if (names.length === 0) return;
  const isStack = names.includes('docker-compose.yml') && names.includes('.env');
  throw new DeployError(
    'foreignDirectory',
    isStack ? `${layout.directory} is a stack already.` : `${layout.directory} is not empty.`,
    isStack
      ? 'Change it with: oratorio server add-repo, webhook enable, upgrade. Check it with: oratorio server doctor'
      : 'Choose another directory: --dir',
  );
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new DeployError('foreignDirectory', `${directory} cannot be used (${code}).`, 'Choose another: --dir');
  }
}

/** Whether GitHub agrees with id, key, permissions and installations: better known now than when the first review fails. */
async function proof(answers: InitAnswers, privateKey: string | null, { session }: Preparing): Promise<string[]> {
  const { github, repositories, writes, isOffline } = answers;
  if (isOffline || privateKey === null) return [];
  const asked = () =>
    proveApp({
      endpoint: github.endpoint ?? 'https://api.github.com',
      appId: github.appId,
      privateKey,
      repositories: repositories.map(({ repository }) => repository.fullName),
      isWriting: writes,
      timeoutMs: defaults.timeouts.httpMs,
      signal: session.signal,
    });
  const proven = await watched(session, 'validating', 'Asking GitHub about the App', asked);
  if (proven.state === 'unknown')
    return [`GitHub could not be asked about the App: ${proven.reason} Look later with: oratorio server doctor`];
  const fatal = proven.problems.filter(({ isFatal }) => isFatal);
  if (fatal.length === 0) return proven.problems.map(({ message, hint }) => `${message} ${hint}`);
  throw new DeployError(
    'credentialsRefused',
    fatal.map(({ message }) => message).join(' '),
    `${fatal.map(({ hint }) => hint).join(' ')} Or continue without GitHub: --offline`,
  );
}

async function imagesOf({ images, build, starts }: InitAnswers, preparing: Preparing) {
  const asked = {
    stack: images.stack ?? defaultImages.stack,
    gateway: images.gateway ?? defaultImages.gateway,
  };
  const stack =
    starts || build
      ? await fetchImage(preparing, asked.stack, { build, isNewer: false, otherwise: otherStackImage })
      : asked.stack;
  return { asked, pinned: { stack, gateway: asked.gateway } };
}

/** Secrets of a new stack. Those of an earlier attempt stay: containers may run with them. */
function secretsOf(left: Leftovers | null) {
  const secret = (name: VariableName): string => left?.env.get(name) || newSecret();
  return {
    agentToken: secret('ORATORIO_AGENT_TOKEN'),
    dashboardPassword: secret('ORATORIO_DASHBOARD_PASSWORD'),
    serviceToken: secret('ORATORIO_SERVICE_TOKEN'),
  };
}

async function portsOf({ port }: InitAnswers, left: Leftovers | null) {
  const taken = new Set<number>();
  const next = async (name: VariableName, from: number): Promise<number> => {
    const earlier = Number(left?.env.get(name));
    const chosen = earlier > 0 ? earlier : await firstFreePort(from, taken);
    taken.add(chosen);
    return chosen;
  };
  const backend = port ?? (await next('ORATORIO_BACKEND_PORT', defaults.ports.backend));
  taken.add(backend);
  return {
    backend,
    agent: await next('ORATORIO_AGENT_PORT', defaults.ports.agent),
    dashboard: await next('ORATORIO_DASHBOARD_PORT', defaults.ports.dashboard),
  };
}
