import * as v from 'valibot';
import type { DelegatedOrder } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { SessionState } from './messages.ts';
import type { Peer } from './peer.ts';
import type { Session } from './session.ts';

/** Has the agent use the model and effort of the turn, where it offers them. @throws PeerError; the reason of `signal` */
export async function useChoices(
  agent: string,
  peer: Peer,
  session: Session,
  { model, effort, report }: DelegatedOrder,
  signal: AbortSignal,
): Promise<void> {
  const { sessionId, offers } = session;
  const set = async (category: 'model' | 'thought_level', value: string) => {
    const change = offers.change(category, value);
    if (change === undefined || change === 'current') return change;
    const answer = await peer.request('session/set_config_option', { sessionId, ...change, value }, signal);
    offers.take(v.parse(SessionState, answer ?? {}));
    return change;
  };
  if (model !== undefined && !(await set('model', model)) && session.unknownModel !== model) {
    session.unknownModel = model;
    const used = offers.model && plainText(offers.model).slice(0, defaults.externalAgent.offerChars);
    const uses = used === undefined ? 'chooses its model itself' : `uses ${used}`;
    report.notice('agentModelUnknown', `${agent} does not offer the model ${model} and ${uses}.`);
  }
  if (effort !== undefined) await set('thought_level', effort);
}
