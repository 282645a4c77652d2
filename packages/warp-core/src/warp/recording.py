"""The recording layer, for tapes, bridges and other code that follows what Warp does.

Operations that write arrays call `about_to_write` before and `mark_written` after; while a `Recorder` is current they
also hand it a `Recordable`.
`storage_of` tells which block of memory an array lies in: wrappers of the same memory share one `Storage`, whose
versions every write raises from then on.
"""

from __future__ import annotations

from warp._src.recording.ranges import Layout as Layout
from warp._src.recording.ranges import is_touching as is_touching
from warp._src.recording.recorder import LaunchEventFactory as LaunchEventFactory
from warp._src.recording.recorder import Recordable as Recordable
from warp._src.recording.recorder import Recorder as Recorder
from warp._src.recording.recorder import about_to_write as about_to_write
from warp._src.recording.recorder import caller_location as caller_location
from warp._src.recording.recorder import current_recorder as current_recorder
from warp._src.recording.recorder import make_launch_event as make_launch_event
from warp._src.recording.recorder import mark_written as mark_written
from warp._src.recording.recorder import recording as recording
from warp._src.recording.recorder import set_launch_event_factory as set_launch_event_factory
from warp._src.recording.storage import ArrayContents as ArrayContents
from warp._src.recording.storage import RecordedArray as RecordedArray
from warp._src.recording.storage import RunTable as RunTable
from warp._src.recording.storage import Storage as Storage
from warp._src.recording.storage import follow as follow
from warp._src.recording.storage import is_followed as is_followed
from warp._src.recording.storage import is_foreign as is_foreign
from warp._src.recording.storage import is_overlapping as is_overlapping
from warp._src.recording.storage import is_watching as is_watching
from warp._src.recording.storage import next_foreign_stamp as next_foreign_stamp
from warp._src.recording.storage import next_stamp as next_stamp
from warp._src.recording.storage import note_run as note_run
from warp._src.recording.storage import note_writes as note_writes
from warp._src.recording.storage import replaying as replaying
from warp._src.recording.storage import stamps_between as stamps_between
from warp._src.recording.storage import stamps_of as stamps_of
from warp._src.recording.storage import storage_of as storage_of
