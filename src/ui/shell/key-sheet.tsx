import type { App } from '../app/app.ts';
import type { Command } from '../app/commands.ts';
import { Dialog } from '../parts/dialog.tsx';
import { isLetterKeys, shownKeys } from './keys.ts';

/** All keys of the current commands. */
export function KeySheet({ app, onClose }: { readonly app: App; readonly onClose: () => void }) {
  const groups = new Map<string, Command[]>();
  for (const command of app.commands.all.value) {
    if (!command.keys?.length) continue;
    groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  const { letterKeys } = app.preferences;
  return (
    <Dialog title="Keys" class="keysheet" onClose={onClose}>
      <div class="inside">
        {[...groups].map(([group, commands]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {commands.map((command) => (
                <div key={command.id} class={isOff(command, letterKeys.value) ? 'stale' : undefined}>
                  <dt>
                    <Keys command={command} />
                  </dt>
                  <dd>{command.title}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <p class="quiet">
          Esc closes the part that was opened last. In lists the arrow keys, Page Up, Page Down, Home and End move.
        </p>
        <label class="choice">
          <input
            type="checkbox"
            checked={letterKeys.value}
            onChange={(event) => {
              letterKeys.value = event.currentTarget.checked;
            }}
          />
          Single letters are shortcuts
        </label>
      </div>
    </Dialog>
  );
}

const isOff = ({ keys = [] }: Command, letterKeys: boolean): boolean => !letterKeys && keys.every(isLetterKeys);

/** The keys of a command, with the names printed on a keyboard. */
export function Keys({ command }: { readonly command: Command }) {
  return (
    <>
      {(command.keys ?? []).map((keys, index) => (
        <span key={keys}>
          {index > 0 && ' or '}
          {shownKeys(keys).map((key) => (
            <kbd key={key}>{key}</kbd>
          ))}
        </span>
      ))}
    </>
  );
}
