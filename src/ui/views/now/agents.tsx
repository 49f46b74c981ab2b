import { agentPresets, presetNames } from '../../../protocol/browser.ts';

/** Options of a `select` for the agent of a workspace. */
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
