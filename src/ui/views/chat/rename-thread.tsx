import { Dialog } from '../../parts/dialog.tsx';

/** Asks for the new name of a conversation. */
export function RenameThread({
  name: present,
  onName,
  onClose,
}: {
  readonly name: string;
  readonly onName: (name: string) => void;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title="Rename conversation" onClose={onClose}>
      <form
        class="inside"
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get('name') ?? '').trim();
          if (name !== '') onName(name);
        }}
      >
        <label>
          Name <input name="name" maxLength={200} required defaultValue={present} />
        </label>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main">
            Rename
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
