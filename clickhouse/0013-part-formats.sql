-- A wide part has files of its own for each column, a compact one has all columns of a granule side
-- by side in one file. Which is read sooner depends on the question. A part that is there already
-- changes when it is merged.

-- A device's history is a few rows of every part, and nearly all of their columns: opening files
-- and finding places in them was more than a quarter of what it cost the engine. The largest parts
-- stay wide: there are few, and questions about all sessions read two or three columns.
alter table sessions modify setting min_bytes_for_wide_part = 1073741824;

-- The scorer asks for thousands of keys at once, and for four columns of seven: from compact parts
-- that takes up to two fifths more. So only what few inserts left is compact.
alter table activity modify setting min_bytes_for_wide_part = 524288;
