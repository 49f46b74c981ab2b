import * as v from 'valibot';
import { fromPromise } from 'xstate';
import type { OfWorkspace, SleepAnswer, SupervisionPolicy } from '../../../machines/index.ts';
import { askLocal } from '../../lib/index.ts';
import { Sleep, type SleepRequest, sleepPath } from '../../protocol/index.ts';
import type { FactsOf, HubServices } from '../facts.ts';
import { addressOf } from '../inbox/index.ts';

const answerBytes = 4_096;

/**
 * The `askToSleep` actor: the agent server decides, once its ports are open and stored for the next Hub. It stays awake when they
 * cannot be stored. Rejects when it does not answer.
 */
export function askToSleep(hub: Pick<HubServices, 'save'>, factsOf: FactsOf) {
  return fromPromise<SleepAnswer, OfWorkspace & Pick<SupervisionPolicy, 'idleStopMs'>>(async ({ input, signal }) => {
    const { sleepingPorts, endpoints, probe } = factsOf(input.workspacePath);
    await sleepingPorts?.ports();
    // `followSleep` logs a failure.
    const isStored = await hub.save().then(
      () => true,
      () => false,
    );
    if (!isStored) return { sleeps: false };
    const { origin, token } = addressOf(endpoints['appServerWebSocket'] ?? '');
    const answer = await askLocal(new URL(sleepPath, origin), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ idleMs: input.idleStopMs } satisfies SleepRequest),
      ...{ signal, deadlineMs: probe.timeoutMs, connection: false, takesRedirect: true },
    });
    const text = await answer.text(answerBytes);
    if (!answer.isOk) throw new Error(`it answered ${answer.status}`);
    return v.parse(v.pipe(v.string(), v.parseJson(), Sleep), text);
  });
}
