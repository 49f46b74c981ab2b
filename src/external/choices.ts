import * as v from 'valibot';
import type { DelegatedOrder } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import type { Peer } from '../rpc/index.ts';
import { AgentFailure } from './failure.ts';
import { SessionState } from './messages.ts';
import type { Session } from './session.ts';

/** Has the agent use the model, effort and mode of the turn, where it offers them. @throws JsonRpcError; the reason of `signal` */
export async function useChoices(
  {
    name: agent,
    mayUse,
    maySet,
  }: {
    readonly name: string;
    readonly mayUse: (mode: string) => boolean;
    readonly maySet: (category: string | undefined) => boolean;
  },
  peer: Peer,
  session: Session,
  { model, effort, mode, options, report }: DelegatedOrder,
  signal: AbortSignal,
): Promise<void> {
  const { sessionId, offers } = session;
  const set = async (category: 'model' | 'thought_level', value: string) => {
    const change = offers.change(category, value);
    if (change === undefined || change === 'current') return change;
    const answer = await peer.request('session/set_config_option', { sessionId, ...change, value }, { signal });
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
  const settable = new Set(offers.all.options.filter(({ category }) => maySet(category)).map(({ id }) => id));
  for (const [id, value] of Object.entries(options)) {
    const change = settable.has(id) ? offers.changeOption(id, value) : undefined;
    // An agent drops an option with another model, for example.
    if (change === undefined || change === 'current') continue;
    const answer = await peer.request('session/set_config_option', { sessionId, ...change }, { signal });
    offers.take(v.parse(SessionState, answer ?? {}));
  }
  if (mode === undefined) return;
  const change = mayUse(mode) ? offers.changeMode(mode) : undefined;
  if (change === undefined) {
    // The turn would run in a mode that the user has not chosen, perhaps one that may do more.
    const known = offers.all.modes.map(({ id }) => id).filter(mayUse);
    const words = known.length === 0 ? 'none' : known.join(', ');
    throw new AgentFailure(
      'agentError',
      `${agent} cannot be put into the mode ${mode}; modes in which it asks: ${words}.`,
    );
  }
  if (change === 'current') return;
  const answer = await peer.request(change.method, { sessionId, ...change.params }, { signal });
  offers.noteMode(mode);
  offers.take(v.parse(SessionState, answer ?? {}));
}
