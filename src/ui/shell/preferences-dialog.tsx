import type { Signal } from '@preact/signals';
import type { App } from '../app/app.ts';
import { densities, themes } from '../app/preferences.ts';
import { Dialog } from '../parts/dialog.tsx';

/** Dialog for appearance and keys in this browser. */
export function PreferencesDialog({ app, onClose }: { readonly app: App; readonly onClose: () => void }) {
  const { theme, density, letterKeys } = app.preferences;
  return (
    <Dialog title="Appearance and keys" onClose={onClose}>
      <div class="inside">
        <Choices legend="Theme" name="theme" choices={themes} chosen={theme} />
        <Choices legend="Density of rows" name="density" choices={densities} chosen={density} />
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
        <p class="quiet">Kept in this browser, for all pages of this server.</p>
        {app.isLoggedIn.value && (
          <footer>
            <button type="button" onClick={() => app.leave()}>
              Log out
            </button>
          </footer>
        )}
      </div>
    </Dialog>
  );
}

function Choices<T extends string>({
  legend,
  name,
  choices,
  chosen,
}: {
  readonly legend: string;
  readonly name: string;
  readonly choices: readonly T[];
  readonly chosen: Signal<T>;
}) {
  return (
    <fieldset class="choices">
      <legend>{legend}</legend>
      {choices.map((choice) => (
        <label key={choice}>
          <input
            type="radio"
            name={name}
            checked={chosen.value === choice}
            onChange={() => {
              chosen.value = choice;
            }}
          />
          {capitalised(choice)}
        </label>
      ))}
    </fieldset>
  );
}

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
