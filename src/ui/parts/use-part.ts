import { useEffect, useState } from 'preact/hooks';

/** A part of the page that is fetched when it is first wanted; null until then, and when it cannot be fetched. */
export function usePart<T>(isWanted: boolean, fetchPart: () => Promise<T>): T | null {
  const [part, setPart] = useState<T | null>(null);
  useEffect(() => {
    if (isWanted) fetchPart().then(setPart, () => {});
  }, [isWanted]);
  return part;
}
