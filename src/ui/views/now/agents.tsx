import { agentPresets, presetNames } from '../../../protocol/browser.ts';

/** The agents that can do the turns of a workspace, in a `select`. */
export const AgentOptions = () => (
  <>
    <option value="oratorio">Oratorio</option>
    {presetNames.map((name) => (
      <option key={name} value={name}>
        {name}
        {agentPresets[name].approvals === 'none' && ' (does not ask for approval)'}
      </option>
    ))}
  </>
);
