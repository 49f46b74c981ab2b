import { pollUntil } from '../../supervise/index.ts';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import type { OperationOptions } from './operation.ts';
import { lastLog } from './service-logs.ts';
import { serviceStates } from './service-states.ts';
import type { Engine, ServiceState } from './types.ts';

export interface AwaitOptions extends OperationOptions {
  /** Called after each poll that found at least one of them in another state. */
  readonly onStates?: (states: readonly ServiceState[]) => void;
  readonly timeoutMs?: number;
  readonly pollMs?: number;
}

/** A service that is not as it should be, with the end of its log, oldest line first. */
export class UnhealthyError extends DeployError {
  readonly service: ServiceName;
  readonly log: readonly string[];

  constructor(service: ServiceName, problem: string, log: readonly string[]) {
    super('unhealthy', `The service ${service} ${problem}.`, `Read its log: oratorio server logs --service ${service}`);
    this.service = service;
    this.log = log;
  }
}

const logLines = 50;
/** Number of polls at which a service without a health check must be running. */
const steadyPolls = 3;

/**
 * Waits until all `services` are healthy; one without a health check, until it has been running for a while.
 * @throws UnhealthyError at once when one has no container, exits or restarts, and otherwise at the deadline. The end of its log
 * goes to `onLine` before. DeployError cancelled
 */
export async function awaitHealthy(
  engine: Engine,
  stack: StackLayout,
  services: readonly ServiceName[],
  options: AwaitOptions = {},
): Promise<readonly ServiceState[]> {
  const watch = new Watch(services, options.onStates);
  const { timeoutMs = defaults.timeouts.healthyMs, pollMs = defaults.timeouts.healthPollMs, signal } = options;
  const poll = async (stop: AbortSignal) => watch.see(await serviceStates(engine, stack, { ...options, signal: stop }));
  const polled = await pollUntil(poll, { deadlineMs: timeoutMs, everyMs: pollMs, ...(signal && { signal }) }).catch(
    (error: unknown) => {
      if (signal?.aborted)
        throw new DeployError('cancelled', 'Waiting for the services was cancelled.', null, { cause: error });
      throw error;
    },
  );
  if (polled.last?.isWell) return watch.states;
  const [service, problem] = watch.problem ?? [services[0], 'could not be inspected in time'];
  if (service === undefined) return [];
  const container = watch.states.find((state) => state.service === service)?.container;
  const log = container === undefined ? [] : await lastLog(engine, stack, container, logLines, options);
  for (const line of log) options.onLine?.(`${service} | ${line}`);
  throw new UnhealthyError(service, problem, log);
}

type ServiceHealth = 'well' | 'waiting' | 'failed';

class Watch {
  states: readonly ServiceState[] = [];
  /** A service that has failed, or else one that is not well yet, with its problem. */
  problem: readonly [ServiceName, string] | undefined;
  readonly #services: readonly ServiceName[];
  readonly #onStates: AwaitOptions['onStates'];
  /** Restart counts at the first poll, by container: only later restarts count as failures. */
  readonly #restartsBefore = new Map<string, number>();
  readonly #steady = new Map<string, number>();
  #reported = '';

  constructor(services: readonly ServiceName[], onStates: AwaitOptions['onStates']) {
    this.#services = services;
    this.#onStates = onStates;
  }

  /** Records one poll. `ok` ends the wait: all services are well, or one has failed. */
  see(states: readonly ServiceState[]): { readonly ok: boolean; readonly isWell: boolean } {
    this.states = states.filter(({ service }) => this.#services.includes(service));
    this.#reportChanges();
    const verdicts = this.#services.map((service) => [service, ...this.#verdictOf(service)] as const);
    const worst =
      verdicts.find(([, verdict]) => verdict === 'failed') ?? verdicts.find(([, verdict]) => verdict === 'waiting');
    this.problem = worst && [worst[0], worst[2]];
    return { ok: worst?.[1] !== 'waiting', isWell: worst === undefined };
  }

  #verdictOf(service: ServiceName): readonly [ServiceHealth, string] {
    const state = this.states.find((each) => each.service === service);
    if (state === undefined) return ['failed', 'has no container'];
    const before = this.#restartsBefore.get(state.container) ?? state.restarts;
    this.#restartsBefore.set(state.container, before);
    if (state.isOutOfMemory) return ['failed', 'was ended because it needed more memory than it may have'];
    if (state.state === 'exited' || state.state === 'dead')
      return ['failed', `has ended with exit code ${state.exitCode}`];
    if (state.state === 'restarting' || state.restarts > before) {
      return ['failed', `ends and is started again (exit code ${state.exitCode})`];
    }
    if (state.state !== 'running') return ['waiting', `is ${state.state}`];
    if (state.health === 'healthy') return ['well', ''];
    if (state.health !== 'none')
      return ['waiting', `is ${state.health === 'starting' ? 'not healthy yet' : 'unhealthy'}`];
    const polls = (this.#steady.get(state.container) ?? 0) + 1;
    this.#steady.set(state.container, polls);
    return [polls >= steadyPolls ? 'well' : 'waiting', 'has not been running for long'];
  }

  #reportChanges(): void {
    const now = JSON.stringify(this.states.map(({ container, state, health }) => [container, state, health]));
    if (now !== this.#reported) this.#onStates?.(this.states);
    this.#reported = now;
  }
}
