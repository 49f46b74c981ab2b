import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/** Inserts dropped text at the cursor of the message box; attaches or refuses dropped files. A drop never opens another page. */
export function useDrop(
  form: RefObject<HTMLFormElement | null>,
  box: RefObject<HTMLTextAreaElement | null>,
  write: (text: string) => void,
  attach: (files: Iterable<File>) => Promise<void>,
): void {
  useEffect(() => {
    const onDragOver = (event: DragEvent) => event.preventDefault();
    const onDrop = (event: DragEvent) => {
      event.preventDefault();
      const { dataTransfer } = event;
      if (!dataTransfer) return;
      if (dataTransfer.files.length > 0) {
        void attach(dataTransfer.files);
        return;
      }
      const isInside = event.target instanceof Node && form.current?.contains(event.target);
      const text = dataTransfer.getData('text/plain');
      const element = box.current;
      if (!isInside || text === '' || !element) return;
      const { value, selectionStart, selectionEnd } = element;
      write(value.slice(0, selectionStart) + text + value.slice(selectionEnd));
      element.focus();
    };
    addEventListener('dragover', onDragOver);
    addEventListener('drop', onDrop);
    return () => {
      removeEventListener('dragover', onDragOver);
      removeEventListener('drop', onDrop);
    };
  });
}
