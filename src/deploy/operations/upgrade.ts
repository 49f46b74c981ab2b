import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { planRestart, planUpgrade, type StackPorts } from '../plan/index.ts';
import { isSelinuxEnforcing, readStack, readText, type Stack } from '../stack/index.ts';
import type { ServiceName } from '../stack-plan.ts';
import { agentMoveOf } from './agent-move.ts';
import { type Change, mustBeStack, type Preparing } from './change-stack.ts';
import { type BuildWish, defaultImages, fetchImage, imageRecord, otherStackImage, readImageRecord } from './images.ts';
import { guarded, stackRedactor } from './without-secrets.ts';

export interface UpgradeRequest {
  readonly directory: string;
  /** Null: those that were asked for the last time. */
  readonly images: { readonly stack: string | null; readonly gateway: string | null };
  readonly build: BuildWish | null;
}

/** Other images, and back when they do not become healthy. */
export const upgradeChange = (wish: UpgradeRequest): Change => ({
  directory: wish.directory,
  command: 'upgrade',
  check: mustBeStack(wish.directory),
  async prepare(preparing) {
    const { asked, pinned, current } = await imagesOf(wish, preparing);
    const stack = readStack(wish.directory);
    const notes = [
      ...change('backend and agent server', current.stack, pinned.stack),
      ...(stack.hasIngress ? change('gateway', current.gateway, pinned.gateway) : []),
    ];
    return planUpgrade({
      directory: wish.directory,
      env: readText(stack.layout.env),
      isSelinux: isSelinuxEnforcing(),
      hasIngress: stack.hasIngress,
      images: pinned,
      record: imageRecord({ asked, pinned }),
      ports: portsIn(stack),
      move: agentMoveOf(stack),
      notes: notes.length > 0 ? notes : ['These images run already.'],
    });
  },
});

const change = (what: string, from: string, to: string): readonly string[] =>
  from === to ? [] : [`${what}: ${from} → ${to}`];

async function imagesOf({ directory, images, build }: UpgradeRequest, preparing: Preparing) {
  const { layout, values, hasIngress } = readStack(directory);
  const last = readImageRecord(layout)?.asked ?? defaultImages;
  const asked = { stack: images.stack ?? last.stack, gateway: images.gateway ?? last.gateway };
  const current = {
    stack: values.get('ORATORIO_IMAGE') ?? '',
    gateway: values.get('ORATORIO_GATEWAY_IMAGE') ?? defaultImages.gateway,
  };
  const stack = await fetchImage(preparing, asked.stack, { build, isNewer: true, otherwise: otherStackImage });
  const gateway = hasIngress
    ? await fetchImage(preparing, asked.gateway, {
        build: null,
        isNewer: true,
        otherwise: 'Name an existing image with --gateway-image.',
      })
    : asked.gateway;
  return { asked, pinned: { stack, gateway }, current };
}

export interface UpgradeCheck {
  readonly isNewer: boolean;
  readonly images: readonly { readonly what: string; readonly current: string; readonly available: string }[];
}

/** Whether there is something newer. Fetches it, and changes nothing of the stack. */
export async function checkUpgrade(wish: UpgradeRequest, preparing: Preparing): Promise<UpgradeCheck> {
  const { layout } = readStack(wish.directory);
  const redact = stackRedactor(layout);
  const { pinned, current } = await guarded(layout, () => imagesOf(wish, preparing));
  const images = [
    { what: 'stack', current: current.stack, available: pinned.stack },
    ...(readStack(wish.directory).hasIngress
      ? [{ what: 'gateway', current: current.gateway, available: pinned.gateway }]
      : []),
  ];
  return {
    isNewer: images.some((image) => image.current !== image.available),
    images: images.map((image) => ({ ...image, current: redact(image.current) })),
  };
}

/** Makes the containers again, so that changed settings hold. */
export const restartChange = (directory: string, wanted: readonly ServiceName[]): Change => ({
  directory,
  command: 'restart',
  check: mustBeStack(directory),
  async prepare({ engine }) {
    const stack = readStack(directory);
    const all = servicesOf(stack);
    const missing = wanted.filter((service) => !all.includes(service));
    if (missing.length > 0) {
      throw new DeployError(
        'invalidInput',
        `The stack has no ${missing.join(', ')}.`,
        'To have a gateway: oratorio server webhook enable',
      );
    }
    await engine();
    const services = wanted.length > 0 ? all.filter((service) => wanted.includes(service)) : all;
    // A composition that was edited by hand is its owner's to change; the doctor says how.
    const isMoved = services.includes('agent') && stack.ownership.compose === 'ours';
    const move = isMoved ? agentMoveOf(stack) : null;
    return planRestart(directory, services, portsIn(stack), move && { ...move, isSelinux: isSelinuxEnforcing() });
  },
});

function portsIn({ values }: Stack): StackPorts {
  const portOf = (name: string, preset: number): number => Number(values.get(name) || preset);
  const { backend, agent, dashboard } = defaults.ports;
  return {
    backend: portOf('ORATORIO_BACKEND_PORT', backend),
    agent: portOf('ORATORIO_AGENT_PORT', agent),
    dashboard: portOf('ORATORIO_DASHBOARD_PORT', dashboard),
  };
}

const servicesOf = ({ hasIngress }: Stack): readonly ServiceName[] => [
  'agent',
  'backend',
  ...(hasIngress ? (['webhook-gateway'] as const) : []),
];
