import { useSignal } from '@preact/signals';
import { visible } from '../../../../lib/browser.ts';
import type { AgentChoice, ThreadSummary } from '../../../../protocol/index.ts';
import { href } from '../../../app/router.ts';
import { CommandLine } from '../../../parts/copy.tsx';
import { nameOf } from '../threads.tsx';
import { maxAttempts, type RaceChoices, raceCommand } from './race-command.ts';

interface RaceFormProps {
  readonly workspacePath: string;
  /** Agents that an attempt may have; our own first. */
  readonly agents: readonly AgentChoice[];
  /** Conversations of existing races. */
  readonly races: readonly ThreadSummary[];
}

const nothing: RaceChoices = {
  ...{ prompt: '', check: '', attempts: 3, models: '', efforts: '', agents: '' },
  isUnattended: true,
};

/** Prepares a race. The person runs it in a terminal, and follows it here. */
export function RaceForm({ workspacePath, agents: choosable, races }: RaceFormProps) {
  const choices = useSignal(nothing);
  const set = (change: Partial<RaceChoices>) => {
    choices.value = { ...choices.peek(), ...change };
  };
  const { prompt, check, attempts, models, efforts, agents, isUnattended } = choices.value;
  const installed = choosable.filter(({ isInstalled }) => isInstalled).map(({ name }) => name);
  const known = visible(installed.join(','), { multiline: false });
  const command = raceCommand(choices.value, workspacePath);
  return (
    <form class="race-form" onSubmit={(event) => event.preventDefault()}>
      <p>
        Several attempts work at once, each in files of its own. The first whose check succeeds is applied as one
        change, which can be undone.
      </p>
      <label>
        Prompt
        <textarea rows={4} value={prompt} onInput={(event) => set({ prompt: event.currentTarget.value })} />
      </label>
      <label>
        Check
        <input value={check} placeholder="npm test" onInput={(event) => set({ check: event.currentTarget.value })} />
      </label>
      <label>
        Attempts
        <input
          type="number"
          min={1}
          max={maxAttempts}
          value={attempts}
          onInput={(event) => set({ attempts: event.currentTarget.valueAsNumber })}
        />
      </label>
      <label>
        Models, separated by commas
        <input value={models} onInput={(event) => set({ models: event.currentTarget.value })} />
      </label>
      <label>
        Efforts, separated by commas
        <input value={efforts} onInput={(event) => set({ efforts: event.currentTarget.value })} />
      </label>
      <label>
        Agents, separated by commas
        <input value={agents} placeholder={known} onInput={(event) => set({ agents: event.currentTarget.value })} />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={isUnattended}
          onChange={(event) => set({ isUnattended: event.currentTarget.checked })}
        />
        Run tools without asking
      </label>
      {command === null ? (
        <p class="quiet">Give a prompt, a check and 1 to {maxAttempts} attempts.</p>
      ) : (
        <>
          <p>Run this in a terminal. The check is your command: it runs in the sandbox of each attempt.</p>
          <CommandLine text={command} />
        </>
      )}
      {races.length > 0 && (
        <>
          <h2>Races</h2>
          <ul>
            {races.map((thread) => (
              <li key={thread.id}>
                <a href={href({ view: 'chat', path: [thread.id, 'race'] })}>
                  {visible(nameOf(thread), { multiline: false })}
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </form>
  );
}
