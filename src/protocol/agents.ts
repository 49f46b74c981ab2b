import * as v from 'valibot';

const text = (description: string, most = 200) => v.pipe(v.string(), v.maxLength(most), v.description(description));

/** Agent that does the turns of a workspace. */
export const AgentInUse = v.object({
  kind: v.pipe(v.picklist(['oratorio', 'acp']), v.description('oratorio: our own; acp: an external agent.')),
  name: text('Name of the preset or of the configured agent; oratorio for our own.'),
  version: v.nullable(text('Version it reports; null: it has not been started.')),
  state: text('State of its machine: absent, starting, ready, busy, unhealthy, exited or stopping; the list is open.'),
  approvals: v.pipe(
    v.picklist(['asks', 'none']),
    v.description('none: it cannot be made to ask before it acts, or nothing shows that it does.'),
  ),
});
/** An agent that a thread may name. */
export const AgentChoice = v.object({
  name: text('Value of `agent` of a thread; oratorio is our own.'),
  isInstalled: v.pipe(v.boolean(), v.description('False: its program is not there, so that it does no turn.')),
  approvals: AgentInUse.entries.approvals,
});
export type AgentChoice = v.InferOutput<typeof AgentChoice>;
/** A way of working that an external agent offers. */
export const AgentMode = v.object({ id: text('Value of `agentMode` of a thread.'), name: text('Name for people.') });
export type AgentMode = v.InferOutput<typeof AgentMode>;
/** A further choice that an external agent offers: an on/off switch, or one of `values`. */
export const AgentOption = v.object({
  id: text('Key of `agentOptions` of a thread.'),
  name: text('Name for people.'),
  description: v.optional(text('Description for people.')),
  category: v.optional(text('Category of the Agent Client Protocol, such as model_config.')),
  value: v.pipe(v.union([v.string(), v.boolean()]), v.description('Value of the agent; true or false for a switch.')),
  values: v.pipe(
    v.optional(v.array(v.object({ id: text('A value.'), name: text('Name for people.') }))),
    v.description('Possible values; absent for a switch.'),
  ),
});
export type AgentOption = v.InferOutput<typeof AgentOption>;
export type AgentInUse = v.InferOutput<typeof AgentInUse>;
