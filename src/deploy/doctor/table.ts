import * as app from './checks/app.ts';
import { agent, health } from './checks/backend.ts';
import { config, key, settings, work } from './checks/config.ts';
import { composition, container, gatewayFile, loopbackOnly, workspace } from './checks/containers.ts';
import * as files from './checks/files.ts';
import * as ingress from './checks/ingress.ts';
import * as machine from './checks/machine.ts';
import * as repository from './checks/repository.ts';
import type { RepositoryView } from './config-view.ts';
import type { DoctorContext } from './context.ts';
import { limits } from './limits.ts';
import type { Need } from './needs.ts';
import type { Finding } from './types.ts';

/** One check of the doctor. */
export interface Check {
  readonly id: string;
  readonly title: string;
  /** Without these it is skipped, and says why. */
  readonly needs: readonly Need[];
  /** Page and section that say more. */
  readonly docs: string;
  /** When it takes longer than others. */
  readonly timeoutMs?: number;
  readonly run: (context: DoctorContext, signal: AbortSignal) => Finding | Promise<Finding>;
}
type Row = Omit<Check, 'docs'>;

const row = (id: string, title: string, needs: readonly Need[], run: Check['run'], timeoutMs?: number): Row => ({
  id,
  title,
  needs,
  run,
  ...(timeoutMs !== undefined && { timeoutMs }),
});

/** Checks of every stack (specification §4.4), in the order in which one is the reason for the next. */
const always: readonly Row[] = [
  row('runtime.engine', 'Container engine', [], machine.engine),
  row('runtime.compose', 'Composition tool', ['engine'], machine.composition),
  row('runtime.git', 'Git', [], machine.git),
  row('files.present', 'Files of the stack', [], files.present),
  row('files.modes', 'Modes of files', [], files.modes),
  row('files.owners', 'Owners of files', ['env'], files.owners),
  row('files.marker', 'Generated files', [], files.markers),
  row('files.pair', 'Files of the webhook', [], files.pair),
  row('env.quoting', '.env', ['env'], files.quoting),
  row('env.required', 'Secrets', ['env'], files.required),
  row('env.override', 'Variables of the shell', ['env'], files.overrides),
  row('config.file', 'Settings of the backend', [], config),
  row('key.file', 'Key of the App', ['config'], key),
];

/** For each repository of the settings. */
const ofRepository = ({ repository: name, ...rest }: RepositoryView): readonly Row[] => {
  const bind =
    (look: (typeof repository)['checkout']): Check['run'] =>
    (context, signal) =>
      look({ repository: name, ...rest }, context, signal);
  return [
    row(`repo.${name}.checkout`, `${name}: checkout`, [], bind(repository.checkout)),
    row(`repo.${name}.origin`, `${name}: remote`, ['git'], bind(repository.origin)),
    row(`repo.${name}.mount`, `${name}: in both containers`, ['backend', 'agent'], bind(repository.sameDirectory)),
    row(`repo.${name}.clean`, `${name}: unchanged`, ['backend'], bind(repository.clean)),
    row(`repo.${name}.installation`, `${name}: App`, ['network', 'app'], bind(repository.installation)),
  ];
};

const ofContainers: readonly Row[] = [
  row('compose.config', 'Composition', ['engine', 'env'], composition),
  row('container.agent', 'Container of the agent server', ['engine', 'env'], (context, signal) =>
    container('agent', context, signal),
  ),
  row('container.backend', 'Container of the backend', ['engine', 'env'], (context, signal) =>
    container('backend', context, signal),
  ),
  row('ports.loopback', 'Published ports', ['engine', 'env'], loopbackOnly),
  row('mount.workspace', 'Shared workspace', ['backend', 'agent'], workspace),
  row('backend.health', 'Backend', ['env'], health),
  row('backend.settings', 'Settings as the backend has them', ['backend'], settings),
  row('backend.work', 'Work of the backend', ['backend'], work),
  row('agent.reachable', 'Agent server', ['backend'], agent),
  row('host.disk', 'Disk', [], machine.disk),
  row('host.clock', 'Clock', ['network', 'config'], machine.clock),
  row('app.identity', 'App at GitHub', ['network', 'app'], app.identity),
  row('app.permissions', 'Permissions of the App', ['network', 'app'], app.permissions),
  row('app.events', 'Events of the App', ['network', 'app'], app.events),
];

/** Only of a stack that takes webhooks. */
const ofIngress: readonly Row[] = [
  row('ingress.host', 'Public host', [], ingress.publicHost),
  row('ingress.secret', 'Webhook secret', ['env', 'backend'], ingress.secret),
  row('ingress.caddyfile', 'File of the gateway', ['engine', 'env'], gatewayFile, limits.gatewayCheckMs),
  row('ingress.container', 'Container of the gateway', ['engine', 'env'], (context, signal) =>
    container('webhook-gateway', context, signal),
  ),
  row('ingress.listeners', 'Ports of the gateway', ['engine', 'env'], ingress.listeners),
  row('ingress.dns', 'DNS', ['network', 'publicHost'], ingress.dns),
  row('ingress.certificate', 'Certificate', ['publicHost'], ingress.certificate),
  row('ingress.probe', 'Paths of the gateway', ['publicHost'], ingress.probe),
  row('ingress.hook', 'Webhook at GitHub', ['network', 'app', 'publicHost'], app.hook),
  row('ingress.deliveries', 'Last deliveries', ['network', 'app'], app.deliveries),
];

/** The checks of this stack, in the order of their results. */
export function checksOf(context: DoctorContext): readonly Check[] {
  const repositories = (context.configOrNull()?.repositories ?? []).flatMap(ofRepository);
  const rows = [...always, ...repositories, ...ofContainers, ...(context.hasIngress ? ofIngress : [])];
  return rows.map((each) => ({ ...each, docs: `operations.md#doctor-${each.id.split('.')[0] ?? ''}` }));
}
