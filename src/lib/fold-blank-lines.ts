/** Fewer line breaks in a row stay. */
const foldedFrom = 4;
/** The braille blank is a symbol without a dot. */
const blankLine = /^[\s\u2800]*$/;

/**
 * Text in which a run of blank lines is one line with its number of line breaks, `⏎ × 60`: it cannot push the rest of a command out of
 * view.
 */
export function foldBlankLines(text: string): string {
  const folded: string[] = [];
  let blank: string[] = [];
  const finish = () => {
    folded.push(...(blank.length + 1 >= foldedFrom ? [`⏎ × ${blank.length + 1}`] : blank));
    blank = [];
  };
  for (const line of text.split('\n')) {
    if (blankLine.test(line)) blank.push(line);
    else {
      finish();
      folded.push(line);
    }
  }
  finish();
  return folded.join('\n');
}
